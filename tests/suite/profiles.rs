//! docs/profiles.md matches the profiles.

use tokenwise_tests::profiles::page;

#[test]
fn the_page_is_current() {
    let written = include_str!("../../docs/profiles.md");
    assert_eq!(written, page(), "run `cargo run -p tokenwise-tests --bin profiles > docs/profiles.md`");
}
