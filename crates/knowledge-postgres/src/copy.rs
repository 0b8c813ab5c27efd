//! Many rows at once, in the binary form of COPY: no number is printed and parsed on the way.

use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use tokio_postgres::{Client, Error};

/// The signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What is sent at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// One row of fields, none of which is null.
pub(crate) struct RowWriter<'a>(&'a mut BytesMut);

impl RowWriter<'_> {
    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.0.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.0.put_slice(bytes);
    }
}

/// Copies so many rows. `target` is a table with its columns, and `write` is given the number of a row.
pub(crate) async fn copy_rows(
    client: &Client,
    target: &str,
    columns: i16,
    rows: usize,
    write: impl Fn(usize, &mut RowWriter<'_>),
) -> Result<u64, Error> {
    let sink = client.copy_in::<_, Bytes>(&format!("COPY {target} FROM STDIN (FORMAT binary)")).await?;
    let mut sink = pin!(sink);
    let mut buffer = BytesMut::from(HEADER);
    for row in 0..rows {
        buffer.put_i16(columns);
        write(row, &mut RowWriter(&mut buffer));
        if buffer.len() >= CHUNK_BYTES {
            sink.send(buffer.split().freeze()).await?;
        }
    }
    buffer.put_i16(-1);
    sink.send(buffer.freeze()).await?;
    sink.finish().await
}
