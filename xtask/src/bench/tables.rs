//! The tables of measured numbers, in Markdown.

use serde_json::Value;

use super::{embedded, floors, records::Records, ITEMS};

pub(super) const LARGE: &str = "256×4096";
pub(super) const SMALL: &str = "64×1024";
pub(super) const ROWS_NATIVE: &str = "512×151936";
pub(super) const ROWS_WASM: &str = "64×151936";

/// In place of yes or no.
pub(super) const NOT_MEASURED: &str = "not measured";

/// A number with three significant digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 1e-3 => format!("{value:.1e}"),
        size if size < 0.1 => format!("{value:.4}"),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

pub(super) fn or_dash(value: Option<f64>) -> String {
    value.map_or("–".into(), short)
}

pub(super) fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

pub(super) fn head(cells: &[&str]) -> String {
    let line = cells.iter().enumerate().map(|(index, _)| if index == 0 { "---" } else { "---:" });
    format!("| {} |\n| {} |\n", cells.join(" | "), line.collect::<Vec<_>>().join(" | "))
}

fn errors(record: &Value) -> String {
    let Some(errors) = record["errors"].as_object() else { return "–".into() };
    let each = errors.iter().filter_map(|(name, value)| Some(format!("{name} {}", short(value.as_f64()?))));
    each.collect::<Vec<_>>().join(", ")
}

/// One item: all implementations of a run, compared with this library and with the limits.
fn item(records: &Records, run: &str, item: &str, shape: &str) -> Option<String> {
    let ours = records.ms(run, item, shape, "ours")?;
    let limit = |who| records.ms(run, item, shape, who);
    let mut text = format!("### {item}, {shape}\n\n");
    text +=
        &head(&["who", "ms", "first ms", "Mtok/s", "× ours", "of copy", "of read", "CPU/wall", "error against f64"]);
    for record in records.of(run).filter(|record| record["item"] == item && record["shape"] == shape) {
        let (Some(who), Some(ms)) = (record["who"].as_str(), record["ms"].as_f64()) else { continue };
        let is_limit = ["copy", "read"].contains(&who);
        let rate = record["tokens"].as_f64().filter(|_| !is_limit).map(|tokens| tokens / ms / 1e3);
        let share = |limit: Option<f64>| or_dash(limit.filter(|_| !is_limit).map(|limit| limit / ms));
        let name = match who {
            "ours" => "**tokenwise**".into(),
            "copy" => "limit: copying as many bytes".into(),
            "read" => "limit: reading as many bytes".into(),
            _ => who.to_owned(),
        };
        text += &row(&[
            name,
            short(ms),
            or_dash(record["first"].as_f64()),
            or_dash(rate),
            short(ms / ours),
            share(limit("copy")),
            share(limit("read")),
            or_dash(record["cpu"].as_f64()),
            errors(record),
        ]);
    }
    Some(text + "\n")
}

/// Every item, on one thread.
pub(super) fn items(records: &Records) -> String {
    let mut text = String::new();
    for name in ITEMS {
        for shape in [LARGE, SMALL, ROWS_NATIVE] {
            let table = item(records, "peers-1", name, shape).or_else(|| item(records, "alone-1", name, shape));
            text += &table.unwrap_or_default();
        }
    }
    text
}

/// The number of batches on which every bit is the same.
pub(super) fn bits(records: &Records) -> String {
    let mut text = String::new();
    for item in ITEMS {
        let shapes: Vec<&str> = records
            .of("bits-dispatch")
            .filter(|record| record["item"] == item)
            .filter_map(|record| record["shape"].as_str())
            .collect();
        let same = |run| {
            let other: Vec<_> = shapes.iter().filter_map(|shape| records.fingerprint(run, item, shape)).collect();
            let ours = shapes.iter().filter_map(|shape| records.fingerprint("bits-dispatch", item, shape));
            match other.iter().zip(ours).filter(|(other, ours)| **other == *ours).count() {
                _ if other.is_empty() => "–".to_owned(),
                equal if equal == shapes.len() => format!("equal ({equal} batches)"),
                equal => format!("**{equal} of {}**", shapes.len()),
            }
        };
        if !shapes.is_empty() {
            text += &row(&[item.into(), same("bits-baseline"), same("bits-2")]);
        }
    }
    if text.is_empty() {
        return text;
    }
    head(&["item", "chosen at run time and baseline", "1 and 2 threads"]) + &text
}

/// How many times faster a packed batch is than a padded one.
pub(super) fn packed_gain(records: &Records, item: &str, shape: &str) -> Option<f64> {
    let packed = records.ms("alone-1", item, &format!("{shape} packed"), "ours")?;
    Some(records.ms("alone-1", item, shape, "ours")? / packed)
}

pub(super) fn packed(records: &Records) -> String {
    let mut text = String::new();
    for shape in [LARGE, SMALL] {
        for item in ITEMS {
            let Some(gain) = packed_gain(records, item, shape) else { continue };
            let of = |shape: &str| or_dash(records.ms("alone-1", item, shape, "ours"));
            text += &row(&[item.into(), shape.into(), of(shape), of(&format!("{shape} packed")), short(gain)]);
        }
    }
    if text.is_empty() {
        return text;
    }
    head(&["item", "shape", "padded ms", "packed ms", "times faster"]) + &text
}

/// This library and the peers with two threads, each in its own process.
pub(super) fn threads(records: &Records) -> String {
    let mut text = String::new();
    for name in ITEMS {
        for shape in [LARGE, SMALL, ROWS_NATIVE] {
            let ours_name = if name == "ppo-forward" { "ppo" } else { name };
            let (one, two) =
                (records.ms("alone-1", ours_name, shape, "ours"), records.ms("alone-2", ours_name, shape, "ours"));
            let peers = records.of("peers-2").filter(|record| record["item"] == name && record["shape"] == shape);
            let peers: Vec<String> = peers
                .filter_map(|record| {
                    let (who, ms) = (record["who"].as_str()?, record["ms"].as_f64()?);
                    let ratio = two.map_or(String::new(), |two| format!(" ({}×)", short(ms / two)));
                    // shows the cost of waiting for other threads
                    let cpu = record["cpu"].as_f64().map_or(String::new(), |cpu| format!(" at {cpu:.1} CPUs"));
                    Some(format!("{who} {}{cpu}{ratio}", short(ms)))
                })
                .collect();
            if two.is_none() && peers.is_empty() {
                continue;
            }
            let gain = one.zip(two).map(|(one, two)| one / two);
            text += &row(&[name.into(), shape.into(), or_dash(one), or_dash(two), or_dash(gain), peers.join("; ")]);
        }
    }
    if text.is_empty() {
        return text;
    }
    head(&[
        "item",
        "shape",
        "ours, 1 thread, ms",
        "ours, 2 threads, ms",
        "times faster",
        "peers, 2 threads, ms (× ours)",
    ]) + &text
}

pub(super) fn growth(records: &Records) -> String {
    let all: Vec<&Value> = records.of("growth").collect();
    let mut slots: Vec<u64> = all.iter().filter_map(|record| record["slots"].as_u64()).collect();
    slots.dedup();
    if slots.is_empty() {
        return String::new();
    }
    let names = ["gae", "ppo", "analysis"];
    let mut text = head(&["slots", "gae, ns per token", "ppo, ns per token", "analysis, ns per token"]);
    for count in slots {
        let cell = |name: &&str| {
            let found = all.iter().find(|record| record["slots"] == count && record["growth"] == **name);
            or_dash(found.and_then(|record| Some(record["ms"].as_f64()? * 1e6 / record["tokens"].as_f64()?)))
        };
        text += &row(&[vec![count.to_string()], names.iter().map(cell).collect()].concat());
    }
    text
}

pub(super) fn instructions(records: &Records) -> String {
    let mut text = String::new();
    for record in records.of("counts") {
        let number = |key: &str| or_dash(record[key].as_f64());
        text += &row(&[record["kernel"].as_str().unwrap_or_default().into(), number("instructions"), number("limit")]);
    }
    if text.is_empty() {
        return text;
    }
    head(&["kernel", "instructions per slot", "limit"]) + &text
}

pub(super) fn wasm(records: &Records) -> String {
    let mut text = String::new();
    for (item, shape) in [("logits-f32", ROWS_WASM), ("analysis", LARGE), ("ppo", LARGE)] {
        let Some(native) = records.ms("wasm-native", item, shape, "ours") else { continue };
        text += &row(&[item.into(), "native, AVX2".into(), "–".into(), short(native), "1".into()]);
        for (run, host) in [("wasm-node", "Node"), ("wasm-chromium", "Chromium")] {
            for record in records.of(run).filter(|record| record["item"] == item) {
                let (Some(who), Some(ms)) = (record["who"].as_str(), record["ms"].as_f64()) else { continue };
                text += &row(&[item.into(), who.into(), host.into(), short(ms), short(ms / native)]);
            }
        }
    }
    if text.is_empty() {
        return text;
    }
    head(&["item", "who", "where", "ms", "× native"]) + &text
}

pub(super) fn embedded(records: &Records) -> String {
    let mut text = String::new();
    for (machine, _) in embedded::TARGETS {
        for record in records.of("embedded").filter(|record| record["machine"] == machine) {
            let number = |key: &str| or_dash(record[key].as_f64());
            let bytes = |key: &str| record[key].to_string();
            let item = record["item"].as_str().unwrap_or_default();
            text += &row(&[
                machine.into(),
                item.into(),
                bytes("flash"),
                bytes("static"),
                bytes("stack"),
                number("instructions"),
            ]);
        }
    }
    if text.is_empty() {
        return text;
    }
    head(&["machine", "formula", "flash, bytes", "static RAM, bytes", "stack, bytes", "instructions per token"]) + &text
}

/// All bounds, if at least one was measured.
pub(super) fn floors(records: &Records) -> String {
    let floors = floors::floors(records);
    if floors.iter().all(|floor| floor.value.is_none()) {
        return String::new();
    }
    let mut text = head(&["what", "bound", "measured", "reached"]);
    for floor in floors {
        let side = if floor.at_least { "≥" } else { "≤" };
        let reached = floor.reached().map_or(NOT_MEASURED, |reached| if reached { "yes" } else { "**no**" });
        text += &row(&[floor.what, format!("{side} {}", short(floor.bound)), or_dash(floor.value), reached.into()]);
    }
    text
}
