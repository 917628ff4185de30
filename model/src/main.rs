//! `outlive-model check` runs configurations to their end and fails on a broken rule; `outlive-model mutants` gets the
//! protocols wrong and fails where nobody notices; `outlive-model explore` shows a configuration in a browser.

mod command;

use std::process::ExitCode;

use command::Asked;

const USAGE: &str = "\
usage: outlive-model check [--config NAME] [--all] [--threads N] [--bless]
       outlive-model mutants [--caught | --harmless] [--show NAME | --show FILE/] [--config NAME] [--threads N] [--bless]
       outlive-model explore --config NAME [--address HOST:PORT]

check    without a name: every configuration but the large ones, and every mutant, which must be caught;
         --all takes the large ones too; --bless writes the numbers of states down in states.golden
mutants  get one effect of the protocols wrong at a time and see that it is noticed, as is written down in
         mutants.golden; --caught leaves out those that are said to break nothing, which takes most of the time, and
         --harmless takes them alone; --show prints the shortest way there,
         --config tries them in that configuration only
explore  serve one configuration to a browser, at localhost:3000 unless said otherwise";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    let asked = match parse(words) {
        Ok(asked) => asked,
        Err(why) => return misused(&why),
    };
    match verb.as_str() {
        "check" => command::check(&asked),
        "mutants" => command::mutants(&asked),
        "explore" => command::explore(&asked),
        "help" | "--help" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        other => misused(&format!("no such verb: '{other}'")),
    }
}

pub(crate) fn misused(why: &str) -> ExitCode {
    eprintln!("outlive-model: {why}\n{USAGE}");
    ExitCode::from(2)
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        config: None,
        show: None,
        caught: true,
        harmless: true,
        all: false,
        threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
        bless: false,
        address: "localhost:3000".into(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--config" => asked.config = Some(value()?),
            "--show" => asked.show = Some(value()?),
            "--threads" => {
                let threads = value()?;
                asked.threads = threads
                    .parse()
                    .ok()
                    .filter(|&threads| threads > 0)
                    .ok_or(format!("not a number of threads: {threads}"))?;
            }
            "--address" => asked.address = value()?,
            "--all" => asked.all = true,
            "--caught" => asked.harmless = false,
            "--harmless" => asked.caught = false,
            "--bless" => asked.bless = true,
            other => return Err(format!("no such option: {other}")),
        }
    }
    if !asked.caught && !asked.harmless {
        return Err("--caught and --harmless leave nothing between them".into());
    }
    Ok(asked)
}
