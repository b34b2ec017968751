//! Writes the table of where the frameworks differ to standard output.

fn main() {
    print!("{}", tokenwise_tests::profiles::page());
}
