//! A file that JavaScript provides in parts.

use std::{cell::RefCell, io};

use tokenwise_reader::Source;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const DECLARATION: &str = "
/** A file: its size in bytes, and a part of it. */
export interface PartialFile {
  readonly size: number;
  part(from: number, length: number): Uint8Array;
}
";

#[wasm_bindgen]
extern "C" {
    /// What [`read`](crate::read) reads.
    #[wasm_bindgen(typescript_type = "PartialFile")]
    pub type JsFile;

    #[wasm_bindgen(method, getter)]
    fn size(this: &JsFile) -> f64;

    #[wasm_bindgen(method, catch)]
    fn part(this: &JsFile, from: f64, length: f64) -> Result<Vec<u8>, JsValue>;
}

thread_local! {
    /// A source must be `Send`, which a JavaScript value is not, so the source itself holds nothing.
    static FILE: RefCell<Option<JsFile>> = const { RefCell::new(None) };
}

/// The file that is being read; there is one at a time.
#[derive(Clone, Copy)]
pub(crate) struct Opened;

impl Opened {
    pub(crate) fn new(file: JsFile) -> Self {
        FILE.set(Some(file));
        Self
    }
}

impl Source for Opened {
    fn size(&self) -> io::Result<u64> {
        with_file(|file| Ok(file.size() as u64))
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        with_file(|file| {
            let left = (file.size() as u64).saturating_sub(offset);
            let length = left.min(out.len() as u64);
            if length == 0 {
                return Ok(0);
            }
            let bytes = file.part(offset as f64, length as f64).map_err(|_| io::Error::other("the file is gone"))?;
            let read = bytes.len().min(out.len());
            out[..read].copy_from_slice(&bytes[..read]);
            Ok(read)
        })
    }
}

fn with_file<T>(work: impl FnOnce(&JsFile) -> io::Result<T>) -> io::Result<T> {
    FILE.with_borrow(|file| file.as_ref().map_or_else(|| Err(io::Error::other("no file is open")), work))
}
