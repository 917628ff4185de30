//! How many states each configuration has. A changed number is a changed protocol or a changed world: look why
//! before writing it down with `outlive-model check --all --bless`.

/// The golden file: a name and a number on each line, sorted.
const TEXT: &str = include_str!("../states.golden");

/// Where the golden file was when this was built.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/states.golden");

/// The number that is written down for a configuration.
pub fn states(name: &str) -> Option<usize> {
    let mut lines = TEXT.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = lines.find(|(known, _)| *known == name)?;
    number.trim().parse().ok()
}

/// Write the number of a configuration down. Errors are those of reading and writing the file.
pub fn write(name: &str, states: usize) -> std::io::Result<()> {
    let old = std::fs::read_to_string(PATH)?;
    let others = old.lines().filter(|line| {
        let known = line.split(' ').next().unwrap_or_default();
        !known.is_empty() && known != name
    });
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.push(format!("{name} {states}"));
    lines.sort();
    std::fs::write(PATH, lines.join("\n") + "\n")
}
