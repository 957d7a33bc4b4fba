#!/bin/sh
# Counts, for each crate and for all, the words that make code hard to read:
#
#   docs    doc comments that open with a pronoun or a question word            at most 5 %
#   tests   tests whose name has more than eight words, or opens with such a word
#   types   type definitions whose name another file of any crate defines, too  at most 16 %
#
#   scripts/words.sh               the table
#   scripts/words.sh --list PATH   each finding under PATH, one a line: file:line: kind: text
set -eu

cd "$(dirname "$0")/.."
list=
under=.
if [ "${1-}" = --list ]; then
    list=1
    under=${2-.}
fi

git ls-files --cached --others --exclude-standard '*.rs' | while read -r file; do
    [ -f "$file" ] && echo "$file"
done | sort | xargs awk -v list="$list" -v under="${under#./}" '
function crate_of(file,  part) {
    split(file, part, "/")
    if (part[1] == "crates") return part[2]
    if (part[1] == "bindings") return part[1] "/" part[2]
    return part[1]
}
function first_word(text) {
    sub(/^[^A-Za-z`]*/, "", text)
    if (substr(text, 1, 1) == "`") return ""
    if (!match(text, /^[A-Za-z]+/)) return ""
    return tolower(substr(text, 1, RLENGTH))
}
function finding(kind, text) {
    if (list && (under == "." || index(FILENAME, under) == 1)) print FILENAME ":" FNR ": " kind ": " text
}
BEGIN {
    openings = "what which who whom whose whoever whatever whichever where wherever when whenever why how whether " \
        "it its they them their those that this these he she we you your so such there here " \
        "everything something anything nothing everyone everybody anyone anybody someone somebody nobody"
    split(openings, word, " ")
    for (i in word) opening[word[i]] = 1
}
FNR == 1 { in_docs = 0; is_test = 0; crate = crate_of(FILENAME); crates[crate] = 1 }

# A doc comment is a run of lines with the same mark; its first line with text counts.
/^[ \t]*\/\/[\/!]/ && !/^[ \t]*\/\/\/\// {
    text = $0
    sub(/^[ \t]*\/\/[\/!][ \t]*/, "", text)
    if (!in_docs && text != "") {
        in_docs = 1
        docs[crate]++
        if (opening[first_word(text)]) { bad_docs[crate]++; finding("docs", text) }
    }
    next
}
{ in_docs = 0 }

/^[ \t]*#\[(tokio::)?test\]/ { is_test = 1 }
is_test && /^[ \t]*(pub )?(async )?fn [a-z0-9_]+/ {
    is_test = 0
    name = $0
    sub(/^[ \t]*(pub )?(async )?fn /, "", name)
    sub(/[^A-Za-z0-9_].*/, "", name)
    tests[crate]++
    if (split(name, part, "_") > 8 || opening[part[1]]) { bad_tests[crate]++; finding("tests", name) }
}

# Associated types stand in blocks; only aliases at the margin are names of types.
/^[ \t]*(pub(\([a-z: ]+\))? )?(unsafe )?(struct|enum|trait|union) [A-Z]/ || /^(pub(\([a-z: ]+\))? )?type [A-Z]/ {
    name = $0
    sub(/^[ \t]*(pub(\([a-z: ]+\))? )?(unsafe )?(struct|enum|trait|union|type) /, "", name)
    sub(/[^A-Za-z0-9_].*/, "", name)
    if (!((name, FILENAME) in seen)) {
        seen[name, FILENAME] = 1
        files[name]++
        types[crate]++
        defined[++definitions] = name
        defined_in[definitions] = crate
        defined_at[definitions] = FILENAME ":" FNR
    }
}
function percent(part, whole) { return whole ? sprintf("%5.1f %%", 100 * part / whole) : "      -" }
function row(name, d, bd, t, bt, y, by) {
    printf "%-16s %6d %5d %s  %6d %5d %s  %6d %5d %s\n", name, d, bd, percent(bd, d), t, bt, percent(bt, t), y, by, percent(by, y)
}
END {
    for (i = 1; i <= definitions; i++) {
        if (files[defined[i]] < 2) continue
        shared[defined_in[i]]++
        all_shared++
        if (list && (under == "." || index(defined_at[i], under) == 1)) print defined_at[i] ": types: " defined[i]
    }
    if (list) exit
    printf "%-16s %6s %13s  %6s %13s  %6s %13s\n", "crate", "docs", "bad", "tests", "bad", "types", "shared"
    for (crate in crates) names[++count] = crate
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && names[j] < names[j - 1]; j--) { swap = names[j]; names[j] = names[j - 1]; names[j - 1] = swap }
    for (i = 1; i <= count; i++) {
        crate = names[i]
        row(crate, docs[crate], bad_docs[crate], tests[crate], bad_tests[crate], types[crate], shared[crate])
        d += docs[crate]; bd += bad_docs[crate]; t += tests[crate]; bt += bad_tests[crate]; y += types[crate]
    }
    row("all", d, bd, t, bt, y, all_shared)
}'
