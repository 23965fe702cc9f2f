//! Relative links in Markdown: the file they name exists, and so does the heading.

use std::path::Path;

use super::Finding;

/// Checks every inline link of one document. Links to web pages are not followed.
pub fn check(root: &Path, path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        let folder = path.parent().unwrap_or(Path::new(""));
        let named = if file.is_empty() {
            path.to_path_buf()
        } else {
            folder.join(file)
        };
        if !root.join(&named).exists() {
            findings.push(Finding::of_line(
                path,
                line,
                format!("`{target}` leads nowhere"),
            ));
        } else if !heading.is_empty() {
            let there = std::fs::read_to_string(root.join(&named)).unwrap_or_default();
            if !headings(&there).any(|slug| slug == heading) {
                findings.push(Finding::of_line(
                    path,
                    line,
                    format!("`{}` has no heading `#{heading}`", named.display()),
                ));
            }
        }
    }
    findings
}

/// The lines of a document outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// Targets of inline links `[text](target)`, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second piece between backquotes is code.
        let line: String = line.split('`').step_by(2).collect();
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, after)) = after.split_once(')') else {
                break;
            };
            found.push((
                number,
                target.split(' ').next().unwrap_or(target).to_owned(),
            ));
            rest = after;
        }
    }
    found
}

/// The anchors that forges derive from headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_' || *c == ' ')
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
}

#[cfg(test)]
mod tests {
    use super::{headings, links};

    #[test]
    fn links_in_code_are_not_links() {
        let text = "[a](one.md) `[b](two.md)` [c](three.md#x \"t\")\n```\n[d](four.md)\n```\n";
        let targets: Vec<_> = links(text).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, ["one.md", "three.md#x"]);
    }

    #[test]
    fn headings_become_anchors() {
        let slugs: Vec<_> = headings("# One `Two`, three\n```\n# no\n```\n## 4. Five\n").collect();
        assert_eq!(slugs, ["one-two-three", "4-five"]);
    }
}
