//! Numbers and lists as bytes, in one order on every machine.

#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }

    pub(crate) fn list<T, const SIZE: usize>(&mut self, list: &[T], each: impl Fn(&T) -> [u8; SIZE]) {
        self.0.extend(((list.len() * SIZE) as u64).to_le_bytes());
        self.0.reserve(list.len() * SIZE);
        list.iter().for_each(|item| self.0.extend(each(item)));
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what [`Writer`] wrote; `None` where the bytes end too early.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn list<T, const SIZE: usize>(&mut self, each: impl Fn([u8; SIZE]) -> T) -> Option<Vec<T>> {
        let (items, rest) = self.bytes()?.as_chunks::<SIZE>();
        rest.is_empty().then(|| items.iter().map(|item| each(*item)).collect())
    }
}
