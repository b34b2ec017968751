//! The conventions of the frameworks.

#[cfg(feature = "full")]
pub mod compare;

use tokenwise::{profile::Convention, Profile};
use tokenwise_catalogue::ConfigError;
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{
    error::{wrong_type, Result},
    write::Record,
};

fn read_profile(name: &str, given: &JsValue) -> Result<Profile> {
    let names = Profile::ALL.map(Profile::name);
    let text = given.as_string().ok_or_else(|| wrong_type(name, &names.join(" | "), given))?;
    Profile::from_name(&text).ok_or_else(|| ConfigError::unknown_choice(name, &names.join(", "), &text).into())
}

/// The conventions of a profile: their names, and what they are.
#[wasm_bindgen(skip_typescript)]
pub fn conventions(profile: &JsValue) -> Result {
    let conventions = read_profile("profile", profile)?.conventions();
    let record = Record::new();
    for &convention in Convention::ALL {
        record.entry(convention.name(), format!("{:?}", conventions.of(convention)))?;
    }
    Ok(record.into())
}
