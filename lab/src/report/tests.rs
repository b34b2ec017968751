//! The report of synthetic runs, whose outcome is known.

use std::fs;

use super::{
    analysis::Report,
    judge::Verdict,
    load::load,
    synthetic::{experiment, run, Folder, Shape, STEPS},
    *,
};

fn verdicts<'a>(report: &'a Report, name: &str) -> Vec<(&'a str, &'a str, Verdict)> {
    let judgement = report.tasks[0].judgements.iter().find(|judgement| judgement.name == name).unwrap();
    let columns = judgement.columns.iter().zip(&judgement.verdicts);
    columns.map(|((variant, against), verdict)| (&**variant, &**against, *verdict)).collect()
}

#[test]
fn what_was_built_in_is_found() {
    let folder = Folder::new("found");
    experiment(&folder.0);
    let report = Report::of(load(&folder.0).unwrap());
    assert!(report.left_out.is_empty());
    assert_eq!(report.tasks.iter().map(|task| &*task.name).collect::<Vec<_>>(), ["two-digit", "one-digit"]);
    let task = &report.tasks[0];
    let names: Vec<&str> = task.variants.iter().map(|variant| &*variant.name).collect();
    assert_eq!(names, ["C0", "C0k", "C1", "C2", "C3", "C1+gamma=0.8", "C1+target=fixed"]);
    let c1 = task.variant("C1").unwrap();
    assert_eq!(c1.seeds, [0, 1, 2, 3, 4]);
    assert!((c1.end.mean - 0.9).abs() < 0.02, "{:?}", c1.end);
    // 0.1 + 0.8·(1 − (1 − x)²) has its mean at 0.1 + 0.8·2/3
    assert!((c1.area.mean - 0.633).abs() < 0.01, "{:?}", c1.area);
    let cost = c1.cost.as_ref().unwrap();
    assert!(
        (cost.formulas - 0.02).abs() < 1e-9
            && (cost.formulas_of_all - 0.02).abs() < 1e-9
            && (cost.seconds.mean - 66.0).abs() < 1e-6,
        "{cost:?}"
    );
    assert_eq!(cost.stages[0].0, "rollout");

    use Verdict::{Held, NotHeld};
    let of = |variant: &str, against: &str, name: &str| {
        verdicts(&report, name).into_iter().find(|found| (found.0, found.1) == (variant, against)).unwrap().2
    };
    assert_eq!((of("C1", "C0k", "H2"), of("C3", "C0k", "H2")), (Held, NotHeld));
    // more entropy means more covariance here
    assert_eq!((of("C1", "C0", "H3"), of("C3", "C0", "H3")), (NotHeld, Held));
    // lambda falls to 0 in one step
    assert_eq!(of("C1", "C0", "J2"), NotHeld);

    assert_eq!(task.best.as_ref().unwrap().variant, "C1+gamma=0.8");
    let fixed = task.switches.iter().find(|switch| switch.variant == "C1+target=fixed").unwrap();
    let paired = fixed.area.as_ref().unwrap().paired.as_ref().unwrap();
    assert!(paired.mean < -0.3 && paired.flip_p == 0.0625, "{paired:?}");
    let c0 = &task.findings[0].en;
    assert!(c0.starts_with("C0 learns from a mean reward of 0.1"), "{c0}");
    let why = &task.reasons.iter().find(|reason| reason.facts.variant == "C1+target=fixed").unwrap().sentences[0];
    assert!(why.en.contains("rises in 100 % of the steps") && why.en.contains("integrates"), "{why:?}");
    let c3 = task.reasons.iter().find(|reason| reason.facts.variant == "C3").unwrap();
    assert!(c3.sentences[1].en.contains("lambda is 0 in 100 % of the steps"), "{:?}", c3.sentences);
}

#[test]
fn runs_that_have_not_ended_are_listed_and_count_nowhere() {
    let folder = Folder::new("incomplete");
    let shape = Shape { end: 0.8, entropy: 1.0, beta: 0.0, lambda: 0.0 };
    for seed in 0..3 {
        run(&folder.0, "two-digit", "C0", seed, STEPS, shape);
    }
    run(&folder.0, "two-digit", "C0", 3, 120, Shape { end: -90.0, ..shape });
    fs::create_dir_all(folder.0.join("two-digit/C1/seed-0")).unwrap();
    run(&folder.0, "two-digit", "C2", 0, STEPS, shape);
    let metrics = folder.0.join("two-digit/C2/seed-0/metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, text.replacen("\"step\":7,", "\"step\":8,", 1)).unwrap();
    let report = Report::of(load(&folder.0).unwrap());
    let listed: Vec<(&str, &str, usize, &str)> =
        report.left_out.iter().map(|run| (&*run.variant, &*run.seed, run.steps, &*run.why.en)).collect();
    assert_eq!(
        listed,
        [
            ("C0", "3", 120, "the run has not ended"),
            ("C1", "0", 0, "there is no run.json"),
            ("C2", "0", 6, "metrics.jsonl: expected step 7, got 8"),
        ]
    );
    let c0 = report.tasks[0].variant("C0").unwrap();
    assert_eq!(c0.seeds, [0, 1, 2]);
    assert!(c0.end.mean > 0.7, "{:?}", c0.end);
    write(&folder.0, &folder.0.join("out")).unwrap();
    let html = fs::read_to_string(folder.0.join("out/report.html")).unwrap();
    assert!(html.contains("3 runs are not complete and are left out of every number"));
}

#[test]
fn few_seeds_decide_nothing_and_one_step_is_a_run() {
    let folder = Folder::new("few");
    for (variant, end) in [("C0", 0.5), ("C1", 0.9)] {
        run(&folder.0, "two-digit", variant, 0, STEPS, Shape { end, entropy: 1.0, beta: 0.1, lambda: 0.1 });
    }
    let report = Report::of(load(&folder.0).unwrap());
    assert_eq!(verdicts(&report, "J3"), [("C1", "C0", Verdict::Undecided)]);
    write(&folder.0, &folder.0.join("out")).unwrap();
    let empty = Folder::new("empty");
    write(&empty.0, &empty.0.join("out")).unwrap();
    assert!(fs::read_to_string(empty.0.join("out/report.html")).unwrap().contains("No run is complete"));
    assert!(write(&empty.0.join("nothing"), &empty.0).is_err());
}

#[test]
fn the_page_stands_alone_and_speaks_both_languages() {
    let folder = Folder::new("page");
    experiment(&folder.0);
    let out = folder.0.join("out");
    write(&folder.0, &out).unwrap();
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    for outside in ["src=", "@import", "url(", "href=\"http", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("<span lang=\"en\">").count(), html.matches("<span lang=\"zh\">").count());
    assert!(html.matches("<svg").count() > 30, "{}", html.matches("<svg").count());
    assert!(!html.contains("NaN") && !html.contains("inf"), "a number that is not one was printed");
    let numbers: Value = serde_json::from_slice(&fs::read(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(numbers["tasks"][0]["variants"][0]["name"], "C0");
    for entry in fs::read_dir(out.join("figures")).unwrap() {
        let svg = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"));
    }
}

#[test]
fn the_small_form_is_small_and_says_how_it_was_made() {
    let folder = Folder::new("small");
    experiment(&folder.0);
    let out = folder.0.join("docs");
    write_small(&folder.0, &out).unwrap();
    let readme = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(readme.contains("cargo run --release -p tokenwise-lab -- report RUNS --small"));
    assert!(readme.contains("| steps to "), "{readme}");
    for picture in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(picture.starts_with("..") || out.join(picture).exists(), "{picture}");
    }
    let prose = readme.lines().filter(|line| !line.starts_with('|') && !line.starts_with("!["));
    for line in prose {
        assert!(line.chars().count() <= 120, "{line}");
    }
    assert!(fs::metadata(out.join("numbers.json")).unwrap().len() < 1_000_000);
}
