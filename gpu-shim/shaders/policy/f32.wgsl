fn load_logit(index: u32) -> u32 {
    return load_word(index);
}
