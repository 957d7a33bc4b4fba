use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

# Whole programs of the kind that HTTP::Haul is for.
delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [200, { 'Set-Cookie' => 'session=' . length $request->{body} }, 'welcome'] if $target eq '/login';
    return [200, {}, "$1:" . ($request->{headers}{cookie} || '')] if $target =~ m{\A/page/(\d+)};
    return [200, {}, 'b' x $1] if $target =~ m{\A/bytes/(\d+)};
    return [200, { 'X-Length' => length $request->{body} }, $request->{body}];
});

# 2,000 GETs on one connection.
my $http = HTTP::Haul->new;
my $right = grep { $http->get($server->url("/page/$_"))->{content} eq "$_:" } 1 .. 2_000;
is($right, 2_000, '2,000 GETs succeed');
is($http->stats->{connections}, 1, '2,000 GETs use one connection');

# POST login, then GETs with the cookie from another object that shares the jar; saved for the next
# process.
my $dir = tempdir(CLEANUP => 1);
my $jar = HTTP::Haul::Jar->new(file => "$dir/jar");
is(HTTP::Haul->new(cookie_jar => $jar)->post_form($server->url('/login'), { user => 'u', password => 'p' })->{content}, 'welcome', 'login form is posted');
my $other = HTTP::Haul->new(cookie_jar => $jar);
$right = grep { $other->get($server->url("/page/$_"))->{content} eq "$_:session=17" } 1 .. 100;
is($right, 100, 'other object sends the session cookie');
$jar->save;
my $next = `$^X @{[map { "'-I$_'" } @INC]} -MHTTP::Haul -MHTTP::Haul::Jar -e 'print HTTP::Haul->new(cookie_jar => HTTP::Haul::Jar->new(file => shift))->get(shift)->{content}' '$dir/jar' '@{[$server->url('/page/7')]}'`;
is($next, '7:session=17', 'next process sends the session cookie');

# Reads and writes of several sizes against one server.
for my $size (100, 10_000, 300_000) {
    my $body = join '', map { chr(33 + ($_ * 7) % 90) } 1 .. $size;
    my ($reads, $writes) = (0, 0);
    for my $round (1 .. 30) {
        $reads++ if $http->get($server->url("/bytes/$size"))->{content} eq 'b' x $size;
        my $response = $http->post($server->url('/echo'), { content => $body, headers => { 'Content-Type' => 'text/plain' } });
        $writes++ if $response->{content} eq $body && $response->{headers}{'x-length'} == $size;
    }
    is("$reads $writes", '30 30', "30 reads and writes of $size bytes");
}
is($http->stats->{connections}, 1, 'all requests used one connection');

# HTTP::Response objects through LWP.
SKIP: {
    eval { require LWP::UserAgent; require LWP::Protocol::haul } or skip 'LWP is not installed', 1;
    my $ua = LWP::UserAgent->new;
    my $right = grep { $ua->get($server->url("/page/$_"))->decoded_content eq "$_:" } 1 .. 200;
    is($right, 200, 'LWP returns 200 HTTP::Response objects');
}
done_testing;
