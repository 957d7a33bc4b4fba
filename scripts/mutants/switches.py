"""Compiles many mutants into one copy of a crate.

Each mutant becomes a branch on `crate::mutant_switch::on(NUMBER)`, which is true for the number in the environment
variable HAUL_MUTANT. One build then serves all mutants, and a test run chooses one of them.
"""

from tree_sitter import Language, Parser
import tree_sitter_rust

PARSER = Parser(Language(tree_sitter_rust.language()))

# Some mutants overflow for certain, or never end.
LINTS = b"#![allow(warnings, arithmetic_overflow, unconditional_panic, overflowing_literals)]\n"
# HAUL_MUTANT_REACHED names a file to which a process appends the number of each switch that it evaluates.
MODULE = """

#[allow(missing_docs, unreachable_pub, clippy::all)]
#[doc(hidden)]
pub(crate) mod mutant_switch {
    extern crate std;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ACTIVE: OnceLock<u32> = OnceLock::new();
    static RECORD: OnceLock<Option<std::string::String>> = OnceLock::new();
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    #[inline(never)]
    pub fn on(number: u32) -> bool {
        let active = *ACTIVE.get_or_init(|| std::env::var("HAUL_MUTANT").map_or(0, |n| n.parse().unwrap()));
        if active != 0 {
            return active == number;
        }
        if !REACHED[number as usize].swap(true, Ordering::Relaxed) {
            if let Some(path) = RECORD.get_or_init(|| std::env::var("HAUL_MUTANT_REACHED").ok()) {
                if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) {
                    let _ = file.write_all(std::format!("{number}\\n").as_bytes());
                }
            }
        }
        false
    }
}
"""


def call(number):
    return b"crate::mutant_switch::on(%d)" % number


def offsets_of_lines(source):
    """The byte offset at which each line begins."""
    offsets = [0]
    for line in source.split(b"\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def byte_offset(source, lines, place):
    """The byte offset of a line and a column, both counted from one, the column in characters."""
    start = lines[place["line"] - 1]
    end = source.find(b"\n", start)
    line = source[start : end if end >= 0 else len(source)].decode()
    return start + len(line[: place["column"] - 1].encode())


def replaced(source, mutant):
    """The source with one mutant applied as text."""
    lines = offsets_of_lines(source)
    start = byte_offset(source, lines, mutant["span"]["start"])
    end = byte_offset(source, lines, mutant["span"]["end"])
    return source[:start] + mutant["replacement"].encode() + source[end:]


class File:
    """One source file and the mutants that are switched in it."""

    def __init__(self, source, mutants):
        """Takes pairs of a number and a mutant; `self.alone` lists the numbers that have no switch."""
        self.source = source
        self.lines = offsets_of_lines(source)
        self.tree = PARSER.parse(source)
        self.alone = []
        # From a node's id to its switches.
        self.bodies, self.operators, self.arms, self.guards = {}, {}, {}, {}
        for number, mutant in mutants:
            if not self.place(number, mutant):
                self.alone.append(number)

    def place(self, number, mutant):
        start = byte_offset(self.source, self.lines, mutant["span"]["start"])
        end = byte_offset(self.source, self.lines, mutant["span"]["end"])
        replacement = mutant["replacement"].encode()
        node = self.tree.root_node.descendant_for_byte_range(start, end)
        genre = mutant["genre"]
        if genre == "FnValue":
            while node and not (node.type == "block" and node.parent.type == "function_item"):
                node = node.parent
            return self.add(self.bodies, node, number, replacement)
        if genre == "BinaryOperator":
            while node and node.type not in ("binary_expression", "compound_assignment_expr"):
                node = node.parent
            operator = node.child_by_field_name("operator") if node else None
            if operator is None or (operator.start_byte, operator.end_byte) != (start, end):
                return False
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            return self.add(self.operators, node, number, b"(" + left.text + b") " + replacement + b" (" + right.text + b")")
        if genre == "UnaryOperator":
            while node and not (node.type == "unary_expression" and node.start_byte == start):
                node = node.parent
            if node is None or replacement:
                return False
            return self.add(self.operators, node, number, node.text[1:])
        if genre in ("MatchArm", "MatchArmGuard"):
            while node and node.type != "match_arm":
                node = node.parent
            if node is None:
                return False
            pattern = node.child_by_field_name("pattern")
            if genre == "MatchArm":
                return node.start_byte == start and self.add(self.arms, pattern, number, b"")
            guard = pattern.child_by_field_name("condition")
            if guard is None or (guard.start_byte, guard.end_byte) != (start, end):
                return False
            return self.add(self.guards, guard, number, replacement)
        return False

    @staticmethod
    def add(table, node, number, replacement):
        if node is None:
            return False
        table.setdefault(node.id, []).append((number, replacement))
        return True

    def switched(self, start=0, without=frozenset()):
        """The source with all switches except those `without`, and the ranges of the output that a switch covers."""
        self.without, self.output, self.ranges = without, bytearray(), []
        self.emit(self.tree.root_node)
        self.output += self.source[self.tree.root_node.end_byte :]
        return bytes(self.output), self.ranges

    def of(self, table, node):
        return [s for s in table.get(node.id, ()) if s[0] not in self.without]

    def emit(self, node):
        if not node.parent:
            self.output += self.source[: node.start_byte]
        choices = self.of(self.operators, node) + self.of(self.guards, node)
        body = self.of(self.bodies, node)
        arm = self.of(self.arms, node)
        if choices:
            begin = len(self.output)
            self.output += b"("
            for number, replacement in choices:
                at = len(self.output)
                self.output += b"if " + call(number) + b" { (" + replacement + b") } else "
                self.ranges.append((at, len(self.output), number))
            self.output += b"{ ("
            self.children(node)
            self.output += b") })"
            self.ranges += [(begin, len(self.output), number) for number, _ in choices]
        elif body:
            begin = len(self.output)
            self.output += b"{ "
            for number, replacement in body:
                at = len(self.output)
                self.output += b"if " + call(number) + b" { return " + replacement + b"; } "
                self.ranges.append((at, len(self.output), number))
            self.children(node, skip=1)
            self.ranges += [(begin, len(self.output), number) for number, _ in body]
        elif arm:
            begin = len(self.output)
            condition = node.child_by_field_name("condition")
            off = b" && ".join(b"!" + call(number) for number, _ in arm)
            if condition:
                self.children(node, before={condition.id: off + b" && ("})
                self.output += b")"
            else:
                self.children(node)
                self.output += b" if " + off
            self.ranges += [(begin, len(self.output), number) for number, _ in arm]
        else:
            self.children(node)

    def children(self, node, skip=0, before=None):
        if not node.children:
            self.output += self.source[node.start_byte : node.end_byte]
            return
        position = node.start_byte
        for index, child in enumerate(node.children):
            if index < skip:
                position = child.end_byte
                continue
            self.output += self.source[position : child.start_byte]
            self.output += (before or {}).get(child.id, b"")
            self.emit(child)
            position = child.end_byte
        self.output += self.source[position : node.end_byte]
