//! Decompression of page images: the first 64 bytes are plain, the rest is what the compressor
//! wrote (`ext/compressors/`). The output must be exactly as long as the header says, otherwise it
//! is an error; no decoder may write beyond it.

use flate2::{Decompress, FlushDecompress};

use crate::block::{Compressor, MAX_IMAGE_BYTES, PLAIN_BYTES};
use crate::bytes::ByteReader;

/// Returns the image of `image_bytes`, a length that the caller has bounded.
pub(crate) fn decompressed(
    block: &[u8],
    image_bytes: usize,
    compressor: Compressor,
) -> Result<Vec<u8>, &'static str> {
    let plain = block
        .get(..PLAIN_BYTES)
        .ok_or("the block is shorter than its uncompressed start")?;
    let stored = &block[PLAIN_BYTES..];
    let rest = image_bytes
        .checked_sub(PLAIN_BYTES)
        .ok_or("the image is too short for this")?;
    let mut image = vec![0; image_bytes];
    image[..PLAIN_BYTES].copy_from_slice(plain);
    let written = match compressor {
        Compressor::None => {
            Err("the page is compressed, but the file is not configured with a compressor")
        }
        Compressor::Snappy => snappy(stored, &mut image[PLAIN_BYTES..]),
        Compressor::Zstd => zstd(stored, &mut image[PLAIN_BYTES..]),
        Compressor::Zlib => zlib(stored, &mut image[PLAIN_BYTES..]),
        Compressor::Lz4 => lz4(stored, &mut image[PLAIN_BYTES..]),
    }?;
    if written == rest {
        Ok(image)
    } else {
        Err("the output does not have the length of the image")
    }
}

/// Reads a length of eight bytes and returns that many bytes.
fn counted(stored: &[u8]) -> Result<&[u8], &'static str> {
    let mut reader = ByteReader::new(stored);
    let length = reader.u64_le().map_err(|error| error.reason)?;
    reader.take(length).map_err(|error| error.reason)
}

/// Decompresses a raw block, without the framing format.
fn snappy(stored: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let decoded = snap::raw::Decoder::new().decompress(counted(stored)?, out);
    decoded.map_err(|_| "it is not a snappy block of this length")
}

fn zstd(stored: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let decoded = zstd::bulk::decompress_to_buffer(counted(stored)?, out);
    decoded.map_err(|_| "it is not a zstd frame of this length")
}

/// Decompresses a stream; anything after it is padding. Pages of the old "raw" kind may lack its
/// end.
fn zlib(stored: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let mut stream = Decompress::new(true);
    let decoded = stream.decompress(stored, out, FlushDecompress::Finish);
    decoded.map_err(|_| "it is not a zlib stream")?;
    usize::try_from(stream.total_out()).map_err(|_| "the output is too long")
}

/// Decompresses a raw block that follows four numbers. Only the "useful" part of the output belongs
/// to the page.
fn lz4(stored: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let mut reader = ByteReader::new(stored);
    let mut number = || reader.u32_le().map_err(|error| error.reason);
    let (compressed, uncompressed, useful, _) = (number()?, number()?, number()?, number()?);
    let block = reader
        .take(u64::from(compressed))
        .map_err(|error| error.reason)?;
    let (uncompressed_bytes, useful_bytes) = (uncompressed as usize, useful as usize);
    if uncompressed > MAX_IMAGE_BYTES || uncompressed < useful || useful_bytes != out.len() {
        return Err("its lengths do not fit the image");
    }
    if uncompressed == useful {
        return lz4_flex::block::decompress_into(block, out).map_err(|_| "it is not an LZ4 block");
    }
    let mut whole = vec![0; uncompressed_bytes];
    let written = lz4_flex::block::decompress_into(block, &mut whole);
    if written.map_err(|_| "it is not an LZ4 block")? < useful_bytes {
        return Err("its output is too short");
    }
    out.copy_from_slice(&whole[..useful_bytes]);
    Ok(useful_bytes)
}
