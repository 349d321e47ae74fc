//! A data directory in memory, and the way through it that a reader takes.

use std::collections::BTreeMap;
use std::path::Path;

use seekscope_wiredtiger::catalogue::{CATALOGUE_FILE, Catalogue};
use seekscope_wiredtiger::size_storer::{self, SIZE_STORER_FILE, StoredSize};
use seekscope_wiredtiger::turtle::METADATA_FILE;
use seekscope_wiredtiger::{
    BlockAddress, BlockError, BlockFormat, CheckpointCookie, ExtentList, FileConfig,
    FileConfigError, KeyValue, Metadata, Tree, TreeWalk, Turtle, TurtleError, Visit,
};
use thiserror::Error;

/// Files by their path below the directory.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Error)]
pub(crate) enum ReadError {
    #[error("{0} is missing")]
    Missing(String),
    #[error(transparent)]
    Turtle(#[from] TurtleError),
    #[error("{0}: {1}")]
    Config(String, FileConfigError),
    #[error("{0}: {1}")]
    Block(String, BlockError),
}

/// All of a directory's names.
pub(crate) struct Directory<'a> {
    pub(crate) files: &'a Files,
    pub(crate) turtle: Turtle,
    pub(crate) metadata: Metadata,
    pub(crate) catalogue: Catalogue,
    pub(crate) sizes: BTreeMap<String, StoredSize>,
}

/// A file's tree and lists.
pub(crate) struct Walked {
    pub(crate) config: FileConfig,
    /// The checkpoint's cookie; without one, there is no tree.
    pub(crate) cookie: Option<CheckpointCookie>,
    pub(crate) tree: Tree,
    pub(crate) avail: ExtentList,
    pub(crate) bytes_read: u64,
}

/// Reads every file below `folder`.
pub(crate) fn files_below(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

/// The bytes of a block, or as many as there are.
pub(crate) fn block<'a>(file: &'a [u8], address: &BlockAddress) -> &'a [u8] {
    let at = |offset: u64| {
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(file.len())
    };
    &file[at(address.offset)..at(address.offset.saturating_add(address.length.into()))]
}

/// Walks to the end; the walk and the bytes it was handed.
pub(crate) fn walk(
    file: &[u8],
    root: BlockAddress,
    format: BlockFormat,
    file_bytes: u64,
    visit: Visit,
) -> Result<(TreeWalk, u64), BlockError> {
    let mut walk = TreeWalk::new(root, format, file_bytes, visit)?;
    let mut bytes_read = 0;
    // Last first, so that any order is seen to do.
    while let Some(address) = walk.wanted().last().copied() {
        let bytes = block(file, &address);
        bytes_read += bytes.len() as u64;
        walk.supply(&address, bytes)?;
    }
    Ok((walk, bytes_read))
}

fn rows(file: &str, bytes: &[u8], config: &FileConfig) -> Result<Vec<KeyValue>, ReadError> {
    let cookie = config
        .newest_checkpoint()
        .and_then(|checkpoint| checkpoint.cookie);
    let Some((cookie, root)) = cookie.and_then(|cookie| Some((cookie, cookie.root?))) else {
        return Ok(Vec::new());
    };
    walk(bytes, root, config.format(), cookie.file_bytes, Visit::Rows)
        .and_then(|(walk, _)| walk.rows())
        .map_err(|error| ReadError::Block(file.to_owned(), error))
}

impl<'a> Directory<'a> {
    pub(crate) fn open(files: &'a Files) -> Result<Directory<'a>, ReadError> {
        let file = |name: &str| {
            files
                .get(name)
                .map(Vec::as_slice)
                .ok_or_else(|| ReadError::Missing(name.to_owned()))
        };
        let turtle = Turtle::parse(file("WiredTiger.turtle")?)?;
        let metadata = rows(METADATA_FILE, file(METADATA_FILE)?, &turtle.metadata)?;
        let metadata = Metadata::from_rows(&metadata);
        let rows_of = |name: &str| -> Result<Vec<KeyValue>, ReadError> {
            rows(name, file(name)?, &config_of(&metadata, name)?)
        };
        let catalogue = Catalogue::from_rows(&rows_of(CATALOGUE_FILE)?);
        let sizes = size_storer::parse(&rows_of(SIZE_STORER_FILE)?);
        Ok(Directory {
            files,
            turtle,
            metadata,
            catalogue,
            sizes,
        })
    }

    /// Namespace and index of a file.
    pub(crate) fn names(&self, file: &str) -> Option<(&str, Option<&str>)> {
        let ident = file.strip_suffix(".wt")?;
        self.catalogue.collections.iter().find_map(|collection| {
            if collection.ident == ident {
                return Some((collection.namespace.as_str(), None));
            }
            let index = collection
                .indexes
                .iter()
                .find(|index| index.ident == ident)?;
            Some((collection.namespace.as_str(), Some(index.name.as_str())))
        })
    }

    pub(crate) fn walk(&self, name: &str) -> Result<Walked, ReadError> {
        let file = self
            .files
            .get(name)
            .ok_or_else(|| ReadError::Missing(name.to_owned()))?;
        let config = config_of(&self.metadata, name)?;
        let cookie = config
            .newest_checkpoint()
            .and_then(|checkpoint| checkpoint.cookie);
        let mut walked = Walked {
            config,
            cookie,
            tree: Tree::default(),
            avail: ExtentList::default(),
            bytes_read: 0,
        };
        let Some(cookie) = cookie else {
            return Ok(walked);
        };
        let format = walked.config.format();
        let failed = |error| ReadError::Block(name.to_owned(), error);
        if let Some(root) = cookie.root {
            let (walk, bytes_read) =
                walk(file, root, format, cookie.file_bytes, Visit::InternalPages)
                    .map_err(failed)?;
            walked.tree = walk.finish().map_err(failed)?;
            walked.bytes_read = bytes_read;
        }
        if let Some(avail) = cookie.avail {
            let list = ExtentList::parse(&avail, block(file, &avail), cookie.file_bytes);
            walked.avail = list.map_err(failed)?;
        }
        Ok(walked)
    }
}

fn config_of(metadata: &Metadata, name: &str) -> Result<FileConfig, ReadError> {
    let config = metadata
        .file(name)
        .ok_or_else(|| ReadError::Missing(format!("file:{name}")))?;
    match config {
        Ok(config) => Ok(FileConfig::clone(config)),
        Err(error) => Err(ReadError::Config(name.to_owned(), error.clone())),
    }
}
