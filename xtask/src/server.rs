//! A minimal static file server for one folder, for local use.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Component, Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::Result;

/// Longest request line and headers that are read.
const REQUEST_LIMIT: u64 = 16 * 1024;

/// Answers requests until the process ends.
pub(crate) fn serve(listener: &TcpListener, folder: &Path) -> Result<()> {
    for stream in listener.incoming() {
        let folder = folder.to_path_buf();
        // a broken connection must not stop the server
        if let Ok(stream) = stream {
            thread::spawn(move || answer(&stream, &folder));
        }
    }
    Ok(())
}

fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream.take(REQUEST_LIMIT));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    // read all headers: closing the socket with unread data would reset the connection
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = match (method, file_of(folder, target)) {
        ("GET" | "HEAD", Some(path)) => match fs::read(&path) {
            Ok(body) => ("200 OK", content_type(&path), body),
            Err(_) => ("404 Not Found", "text/plain", b"not found\n".to_vec()),
        },
        ("GET" | "HEAD", None) => ("404 Not Found", "text/plain", b"not found\n".to_vec()),
        _ => ("405 Method Not Allowed", "text/plain", b"only GET\n".to_vec()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    if method != "HEAD" {
        stream.write_all(&body)?;
    }
    stream.flush()
}

/// The requested file, or `None` if it would be outside the folder.
fn file_of(folder: &Path, target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = PathBuf::from(decode(path)?);
    // excludes `..`, absolute paths and drive letters
    if !path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let file = folder.join(path);
    Some(if file.is_dir() { file.join("index.html") } else { file })
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'\\' | 0 => return None,
            _ => byte,
        });
    }
    let decoded = String::from_utf8(bytes).ok()?;
    (!decoded.contains(['\\', '\0'])).then_some(decoded)
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        // browsers compile while downloading only with this type
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "ts" | "md" | "txt" | "csv" | "jsonl" | "wgsl" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_folder_is_named() {
        let folder = Path::new("/nowhere/page");
        for target in
            ["/../secret", "/a/../../secret", "/%2e%2e/secret", "//etc/passwd", "/..%5csecret", "/%00", "x", "/%f"]
        {
            assert_eq!(file_of(folder, target), None, "{target}");
        }
        assert_eq!(file_of(folder, "/pkg/a%20b.js?x=1#y"), Some(folder.join("pkg/a b.js")));
    }

    #[test]
    fn a_page_is_served_with_its_type() {
        let folder = std::env::temp_dir().join(format!("tokenwise-server-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("index.html"), "hello").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = folder.clone();
        thread::spawn(move || serve(&listener, &served));
        let get = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let page = get("GET /");
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/html") && page.ends_with("hello"), "{page}");
        assert!(get("HEAD /").ends_with("\r\n\r\n"));
        assert!(get("GET /none").starts_with("HTTP/1.1 404"));
        assert!(get("POST /").starts_with("HTTP/1.1 405"));
        fs::remove_dir_all(folder).unwrap();
    }
}
