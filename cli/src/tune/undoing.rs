//! What taking a change back will do, which is told before it is done: by `tune apply --undo` and by `tune --restore`.

use seekscope_settings::{Appliers, ByRestart};

use super::putting_back::leave_to_others;

/// What taking a change back will do.
pub struct Undoing {
    /// What is put back, each setting with its original value.
    pub back: Vec<String>,
    /// What stays as somebody else has set it since, in sentences.
    pub left: Vec<String>,
    pub restarts: Vec<ByRestart>,
}

/// Which command takes the change back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undoer {
    /// `tune apply --undo`, once it is given `--yes`.
    Apply,
    /// `tune --restore`, which does it next.
    Restore,
}

impl Undoing {
    /// Finds out what there is to be done. What somebody else has set since is left to them from here on.
    pub async fn of(applier: &mut Appliers) -> Self {
        let left = leave_to_others(applier).await;
        Self {
            back: applier.outstanding_in_words(),
            left,
            restarts: applier.restore_by_restarts(),
        }
    }
}

/// Says what the restarts that put settings back write and run, and what else they put into force.
pub fn restarts_in_words(restarts: &[ByRestart], undoer: Undoer) -> Vec<String> {
    let restarts = restarts.iter();
    restarts
        .flat_map(|restart| in_words(restart, undoer))
        .collect()
}

fn in_words(restart: &ByRestart, undoer: Undoer) -> Vec<String> {
    let (refused, will, former) = match undoer {
        Undoer::Apply => ("--yes is refused", "--yes will", "apply"),
        Undoer::Restore => ("Not possible", "This will", "the run"),
    };
    if !restart.is_possible {
        return vec![format!("{refused}: {}.", without_command(restart))];
    }
    let file = restart.config_file.display();
    let command = match &restart.command {
        Some(command) => format!("`{command}`"),
        None => "the command of --restart-command".into(),
    };
    let of = match restart.member.as_str() {
        "" => String::new(),
        member => format!(" for {member}"),
    };
    let mut said = vec![format!(
        "{will} write {file} and run {command}{of}, as {former} did."
    )];
    if restart.is_edited {
        said.push(format!(
            "Somebody else has edited {file} since: what they edited stays in it, and holds from that restart on."
        ));
    }
    said
}

/// Says that a restart is needed of which the command is not known.
pub fn without_command(restart: &ByRestart) -> String {
    format!(
        "{} is put back by a restart, and the command for it, which may hold a secret, was not kept: give it again \
         with --config-file and --restart-command",
        restart.config_file.display()
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::KnobValue;
    use seekscope_settings::{Applier, KnobFile};
    use seekscope_tune::space::Configuration;

    use super::super::server_arena::means_alone;
    use super::*;

    #[tokio::test]
    async fn what_is_put_back_is_told_with_its_original_and_what_others_have_set_stays() {
        let folder = tempfile::tempdir().unwrap();
        let value = folder.path().join("value");
        std::fs::write(&value, "2\n").unwrap();
        let path = value.display();
        let knob = format!(
            "[[knob]]\nname = \"depth\"\ntype = \"integer\"\nlow = 1\nhigh = 100\ndefault = 2\n\
             set = {{ command = \"echo {{value}} > {path}\", read = \"cat {path}\" }}\n"
        );
        let entries = KnobFile::parse(&knob).unwrap().knobs;
        let applier = Applier::begin(&entries, means_alone(), folder.path()).unwrap();
        let mut applier = Appliers::from(applier);
        let nine = Configuration([("depth".to_owned(), KnobValue::Integer(9))].into());
        applier.apply(&nine).await.unwrap();
        let undoing = Undoing::of(&mut applier).await;
        assert_eq!(undoing.back.len(), 1);
        assert!(
            undoing.back[0].starts_with("depth = 2 ("),
            "{:?}",
            undoing.back
        );
        assert!(undoing.left.is_empty() && undoing.restarts.is_empty());
        std::fs::write(&value, "7\n").unwrap();
        let undoing = Undoing::of(&mut applier).await;
        assert!(undoing.back.is_empty(), "{:?}", undoing.back);
        assert!(
            undoing.left[0].starts_with("depth stays 7"),
            "{:?}",
            undoing.left
        );
    }

    #[test]
    fn the_restart_that_undoes_is_told_with_what_it_puts_into_force() {
        let mut restart = ByRestart {
            member: String::new(),
            config_file: "/etc/mongod.conf".into(),
            is_possible: true,
            command: Some("systemctl restart mongod".into()),
            is_edited: false,
        };
        let will =
            "--yes will write /etc/mongod.conf and run `systemctl restart mongod`, as apply did.";
        assert_eq!(in_words(&restart, Undoer::Apply), [will]);
        let next =
            "This will write /etc/mongod.conf and run `systemctl restart mongod`, as the run did.";
        assert_eq!(
            restarts_in_words(std::slice::from_ref(&restart), Undoer::Restore),
            [next]
        );
        restart.is_edited = true;
        let edited = in_words(&restart, Undoer::Apply).join(" ");
        assert!(edited.contains("holds from that restart on"), "{edited}");
        (restart.member, restart.command) = ("db1:27017".into(), None);
        let secret = in_words(&restart, Undoer::Apply).join(" ");
        assert!(
            secret.contains("run the command of --restart-command for db1:27017"),
            "{secret}"
        );
        restart.is_possible = false;
        let missing = in_words(&restart, Undoer::Apply).join(" ");
        assert!(
            missing.starts_with("--yes is refused: /etc/mongod.conf"),
            "{missing}"
        );
        assert!(missing.contains("was not kept"), "{missing}");
    }
}
