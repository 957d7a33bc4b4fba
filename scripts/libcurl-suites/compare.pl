# Compares the results of a suite over two libraries, and prints counts.
#
#   perl compare.pl SUITE SYSTEM HAUL EXPECTED
#
# SYSTEM and HAUL have a line `pass NAME`, `fail NAME` or `skip NAME` for each test. EXPECTED has lines `scope NAME: REASON` and
# `differs NAME: REASON`, in which `*` stands for any text.
use strict;
use warnings;

my ($suite, $system_file, $haul_file, $expected_file) = @ARGV;

sub lines {
    my ($path) = @_;
    open(my $file, '<', $path) or return ();
    chomp(my @lines = grep { !/^\s*(#|$)/ } <$file>);
    return @lines;
}

sub results { my %results = map { /^(pass|fail|skip) (.*)/ ? ($2 => $1) : () } lines($_[0]); return \%results }

my ($system, $haul) = (results($system_file), results($haul_file));
my @expected;
for my $line (lines($expected_file)) {
    my ($kind, $name, $reason) = $line =~ /^(scope|differs) (.*?): (.*)$/ or die "$expected_file: $line\n";
    my $pattern = join '.*', map { quotemeta } split /\*/, $name, -1;
    push @expected, { kind => $kind, name => $name, pattern => qr/^$pattern$/, reason => $reason, used => 0, passed => 0 };
}

my (%count, @unexpected);
for my $name (sort grep { $system->{$_} eq 'pass' } keys %$system) {
    $count{all}++;
    my ($rule) = grep { $name =~ $_->{pattern} } @expected;
    if (($haul->{$name} // 'fail') ne 'fail') {
        $count{pass}++ if $haul->{$name} eq 'pass';
        $count{skip}++ if $haul->{$name} eq 'skip';
        $rule->{passed}++ if $rule;
    } elsif ($rule) {
        $count{$rule->{kind}}++;
        $rule->{used}++;
    } else {
        push @unexpected, $name;
    }
}
$count{$_} //= 0 for qw(all pass skip scope differs);
# A test that skips itself over haul is of a feature or version that curl_version_info does not name.
my $within = $count{all} - $count{scope} - $count{skip};
printf "%s: %d tests pass over the system's libcurl; over haul %d pass, %d skip themselves, %d are out of scope, %d differ on purpose, "
    . "%d fail: %.1f %% of %d in scope\n",
    $suite, @count{qw(all pass skip scope differs)}, scalar @unexpected, $within ? 100 * $count{pass} / $within : 0, $within;
my %reasons;
$reasons{"$_->{kind}: $_->{reason}"} += $_->{used} for @expected;
printf "    %4d %s\n", $reasons{$_}, $_ for sort { $reasons{$b} <=> $reasons{$a} || $a cmp $b } grep { $reasons{$_} } keys %reasons;
print "    FAILED: $_\n" for @unexpected;
# A pattern may cover tests that pass, but not only such.
my @stale = grep { $_->{passed} && !$_->{used} } @expected;
print "    passes, though listed: $_->{name}\n" for @stale;
exit(@unexpected || @stale || !$count{all} ? 1 : 0);
