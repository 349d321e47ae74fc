//! Data directories read from disk: files of real servers, and made ones for what real ones do not
//! show.

mod access;
mod made_tree;
mod read_only;
mod real_directory;
