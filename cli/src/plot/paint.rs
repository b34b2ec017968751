//! The plot as PNG: the same SVG, rendered with a bundled font.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{
        fontdb::{Database, Weight, ID},
        FontResolver, Options, Tree,
    },
};

use tokenwise_reader::Budget;

use super::FONTS;
use crate::failure::{Code, Failure, Result};

const REGULAR: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../assets/DejaVuSans-Bold.ttf");

fn failed(what: impl std::fmt::Display) -> Failure {
    Failure::output(Path::new("the picture"), what)
}

/// The picture; its pixels are counted before there is memory for them.
pub(super) fn png(svg: &str, scale: f32, memory: Budget) -> Result<Vec<u8>> {
    let tree = tree(svg)?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or_else(|| failed("it would be empty"))?;
    // four bytes per pixel, and as much again for the encoder
    let bytes = 8 * u64::from(size.width()) * u64::from(size.height());
    let what = format!("a picture of {} × {} pixels", size.width(), size.height());
    memory.check(&what, bytes).map_err(|fault| Failure {
        code: Code::Usage,
        message: format!("{fault} (see --memory, --width and --scale)"),
    })?;
    let mut picture = Pixmap::new(size.width(), size.height()).ok_or_else(|| failed("it is too large"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(failed)
}

/// The drawing with its texts as outlines.
pub(super) fn tree(svg: &str) -> Result<Tree> {
    let missing = Arc::new(Mutex::new(BTreeSet::new()));
    let mut options = Options { font_family: "DejaVu Sans".into(), ..Default::default() };
    options.font_resolver = resolver(Arc::clone(&missing));
    let fonts = options.fontdb_mut();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    if !covered(svg) {
        fonts.load_system_fonts();
    }
    let tree = Tree::from_str(svg, &options).map_err(failed)?;
    warn(&missing);
    Ok(tree)
}

/// Whether the bundled font has all characters: then no other font is loaded, and the picture is the same on every
/// machine.
fn covered(svg: &str) -> bool {
    let letters = |sign: u32| matches!(sign, 0x09..=0x7E | 0xA0..=0x17F | 0x370..=0x3FF | 0x400..=0x45F);
    let signs = |sign: u32| matches!(sign, 0x2010..=0x2027 | 0x2030 | 0x2070..=0x209F | 0x20AC);
    let mathematics = |sign: u32| matches!(sign, 0x2190..=0x2193 | 0x2200..=0x2265);
    svg.chars().map(u32::from).all(|sign| letters(sign) || signs(sign) || mathematics(sign))
}

/// The default resolver, which also records characters that no font has.
fn resolver(missing: Arc<Mutex<BTreeSet<char>>>) -> FontResolver<'static> {
    let usual = FontResolver::default_fallback_selector();
    let select_fallback = Box::new(move |sign, excluded: &[ID], fonts: &mut Arc<Database>| {
        let found = plain_chinese(sign, excluded, fonts).or_else(|| usual(sign, excluded, fonts));
        if let (None, Ok(mut missing)) = (found, missing.lock()) {
            missing.insert(sign);
        }
        found
    });
    FontResolver { select_fallback, ..FontResolver::default() }
}

/// Sans-serif fonts for Chinese that match the bundled one.
fn plain_chinese(sign: char, excluded: &[ID], fonts: &Database) -> Option<ID> {
    if !matches!(u32::from(sign), 0x2E80..=0x9FFF | 0xFF00..=0xFFEF) {
        return None;
    }
    let names = FONTS.split(", ").skip(1);
    let of_name = |name: &str| {
        let mut faces = fonts.faces().filter(|face| face.weight == Weight::NORMAL && !excluded.contains(&face.id));
        faces.find(|face| face.families.iter().any(|(family, _)| family == name)).map(|face| face.id)
    };
    names.into_iter().find_map(of_name)
}

fn warn(missing: &Mutex<BTreeSet<char>>) {
    let Ok(missing) = missing.lock() else { return };
    if !missing.is_empty() {
        let signs: String = missing.iter().take(20).collect();
        crate::output::warn(&format!(
            "no font on this machine has the signs {signs}: they are missing in the picture. \
             Install one (such as Noto Sans CJK), or write an .svg, whose viewer brings its own fonts."
        ));
    }
}
