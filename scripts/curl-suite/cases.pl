# Prints the numbers of the cases that apply: `perl cases.pl DIRECTORY`. They run the command line (not a program that uses the
# library, not a script), and need HTTP servers, proxies, or no server.
use strict;
use warnings;

my %server = map { $_ => 1 } qw(file http http-ipv6 http-unix http/2 http-proxy https https-mtls https-proxy none socks4 socks5 socks5unix);
my @numbers;
for my $path (glob "$ARGV[0]/test*") {
    my ($number) = $path =~ m{/test(\d+)$} or next;
    open my $file, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$file> };
    next if $text =~ /<tool[ >]/ or $text =~ /<command[^>]* type="/ or $text =~ /^unittest$/m;
    my ($servers) = $text =~ m{<server>(.*?)</server>}s;
    next if grep { !$server{$_} } grep { !/^%/ } split ' ', $servers // '';
    push @numbers, $number;
}
print join(' ', sort { $a <=> $b } @numbers), "\n";
