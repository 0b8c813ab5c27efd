//! The key of a vector as the database has it: sixteen bytes are a `uuid` there, compared byte by byte as here.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use quarterdeck_knowledge::saved::Key;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SqlKey(pub(crate) Key);

impl ToSql for SqlKey {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for SqlKey {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(UUID);
}

pub(crate) fn sql_keys(keys: impl IntoIterator<Item = Key>) -> Vec<SqlKey> {
    keys.into_iter().map(SqlKey).collect()
}
