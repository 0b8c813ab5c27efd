/// What so many characters cost a model, roughly: four to a token. No provider's tokenizer is at hand, and budgets only
/// need to be about right.
pub fn estimate_tokens(characters: usize) -> usize {
    characters.div_ceil(4)
}
