use strict;
use warnings;
use lib '.';
use Test::More;
use Cwd qw(getcwd);
use File::Temp qw(tempdir);
use t::Server;

# The programs of docs/perl.md as printed, with the address of a local server for
# https://example.com. The text after a program is its output.
my $guide = '../../docs/perl.md';
-e $guide or plan skip_all => 'the guide is in the source tree of haul only';
delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY)};

my (%tries, %documents);
my $server = t::Server->start(sub {
    my ($request) = @_;
    my ($method, $target, $headers, $body) = @$request{qw(method target headers body)};
    if ($target eq '/login' && $body =~ /user=(\w+)/) {
        return [302, { Location => '/inside', 'Set-Cookie' => "user=$1; Path=/" }, ''];
    }
    my $form = '<form action="/login" method="post"><input name="user"><input type="password" name="password"></form>';
    return [200, { 'Content-Type' => 'text/html' }, $form] if $target eq '/form';
    return [200, {}, ($headers->{cookie} || '') =~ /user=(\w+)/ ? "hello $1" : 'who?'] if $target eq '/inside';
    return [200, {}, "content of $1"] if $target =~ m{\A/page/(\d+)};
    return [503, {}, 'busy'] if $target =~ m{\A/busy} && !$tries{"$method $target"}++;
    my @headers = ('Content-Type' => 'application/json', 'X-Elastic-Product' => 'Elasticsearch');
    return [200, {@headers}, '{}'] if $target eq '/';
    if ($target =~ m{\A/books/_doc/(\d+)}) {
        return [200, {@headers}, qq({"_source":$documents{$1}})] if $method eq 'GET';
        $documents{$1} = $body;
        return [201, {@headers}, '{}'];
    }
    return [200, {}, $body];
});
(my $address = $server->url('')) =~ s{/\z}{};
my @include = map { my $dir = $_; ref $dir ? () : '-I' . ($dir =~ m{\A/} ? $dir : getcwd() . "/$dir") } @INC;
my $dir = tempdir(CLEANUP => 1);

open my $in, '<', $guide or die "cannot read: $!";
my $text = do { local $/; <$in> };
my $programs = 0;
while ($text =~ /^```perl\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/gms) {
    my ($program, $output) = ($1, $2);
    $programs++;
    my ($heading) = substr($text, 0, $-[0]) =~ /.*^#+ ([^\n]*)/ms;
    SKIP: {
        my @modules = $program =~ /^use ([\w:]+)/gm;
        push @modules, 'Mojo::IOLoop' if grep { $_ eq 'HTTP::Haul::Promise' } @modules;
        for my $module (@modules) {
            eval "require $module; 1" or skip "$module is not installed", 1;
        }
        (my $local = $program) =~ s{https://example\.com}{$address}g;
        my $pid = open my $out, '-|';
        die "cannot fork: $!" unless defined $pid;
        if (!$pid) {
            chdir $dir or die "cannot change to $dir: $!";
            open STDERR, '>', "$dir/stderr" or die "cannot redirect: $!";
            exec $^X, @include, '-Mstrict', '-Mwarnings', '-e', $local or die "cannot run: $!";
        }
        my $got = do { local $/; <$out> };
        close $out;
        my $code = $? >> 8;
        $got = '' unless defined $got;
        $got =~ s/\Q$address\E/https:\/\/example.com/g;
        is("$got$code", (defined $output ? $output : '') . 0, "$heading: program prints what the guide says")
            or diag do { open my $errors, '<', "$dir/stderr" or die; local $/; <$errors> };
    }
}
cmp_ok($programs, '>=', 8, 'guide has programs');
done_testing;
