//! The differences between the frameworks as a table, generated from the profiles so that it always matches them.

use std::fmt::Write;

use tokenwise::{
    profile::{Convention, Conventions},
    Profile,
};

/// The page `docs/profiles.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Where the frameworks differ\n\n\
         Written by `cargo run -p tokenwise-tests --bin profiles`; a test compares it with the code. Each row is one\n\
         convention: a field of `tokenwise::profile::Conventions`, the value each profile gives it, and the configs that follow\n\
         it (methods of `Profile`). `default` is the value of the configs' own `Default`. `tokenwise::profile::compare` runs a\n\
         batch under two profiles and names the conventions that make its results differ.\n\n",
    );
    let mut profiles: Vec<Conventions> = Profile::ALL.into_iter().map(Profile::conventions).collect();
    profiles.push(Conventions::default());
    let _ = writeln!(page, "| convention | {} | default | configs |", Profile::ALL.map(Profile::name).join(" | "));
    let _ = writeln!(page, "|{}", " --- |".repeat(Profile::ALL.len() + 3));
    for &convention in Convention::ALL {
        let cells: Vec<String> = profiles.iter().map(|side| format!("`{:?}`", side.of(convention))).collect();
        let _ =
            writeln!(page, "| {} | {} | {} |", convention.name(), cells.join(" | "), followers(convention).join(", "));
    }
    page
}

/// The configs that depend on a convention, found by exchanging it between profiles.
fn followers(convention: Convention) -> Vec<&'static str> {
    let profiles = Profile::ALL.map(Profile::conventions);
    let mut followers = Vec::new();
    for side in profiles {
        for other in profiles {
            side.differences(&side.exchanged(convention, &other), |config, _, _| {
                if !followers.contains(&config) {
                    followers.push(config);
                }
            });
        }
    }
    if followers.is_empty() {
        // conventions that are in no config, such as which slots a score sums
        followers.push("-");
    }
    followers.sort_unstable();
    followers
}
