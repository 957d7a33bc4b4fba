use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

# Perl's memory over many requests. HAUL_REQUESTS says how many; 200,000 were run once.
plan skip_all => 'no /proc here' unless -r '/proc/self/statm';
delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    return [302, { Location => '/' }, 'x'] if $request->{target} eq '/go';
    return [200, { 'Set-Cookie' => 'a=1', 'X-Many' => [1, 2] }, 'y' x 300];
});
my $count = $ENV{HAUL_REQUESTS} || 3_000;
my $resident = sub {
    open my $in, '<', '/proc/self/statm' or die $!;
    return (split ' ', <$in>)[1] * 4;
};
my ($url, $go) = map { $server->url($_) } '/', '/go';
my $http = HTTP::Haul->new(cookie_jar => HTTP::Haul::Jar->new, default_headers => { 'X-A' => 1 });
my %kinds = (
    get      => sub { $http->get($url) },
    fields   => sub { $http->get($url, { headers => { 'X-B' => [1, 2], 'User-Agent' => 'x' } }) },
    form     => sub { $http->post_form($url, { a => 1, b => [2, 3] }) },
    callback => sub { my $n = 0; $http->get($url, { data_callback => sub { $n += length $_[0] } }) },
    content  => sub { my @give = ('a', 'b'); $http->put($url, { content => sub { shift @give } }) },
    redirect => sub { $http->get($go) },
    failure  => sub { $http->get('http://127.0.0.1:1/') },
    refused  => sub { $http->get($url, { headers => { Host => 'x' } }) },
    died     => sub { $http->get($url, { data_callback => sub { die 'x' } }) },
    object   => sub { HTTP::Haul->new->get($url) },
    jar      => sub { my $jar = HTTP::Haul::Jar->new; $jar->add($url, 'b=1'); $jar->cookie_header($url); $jar->cookies },
);
for my $kind (sort keys %kinds) {
    # Less of what is slow.
    my $times = $kind =~ /\A(?:get|form|fields|jar)\z/ ? $count : $count / 5;
    $kinds{$kind}->() for 1 .. $times / 5 + 50;
    my $before = $resident->();
    $kinds{$kind}->() for 1 .. $times;
    my $grown = $resident->() - $before;
    # A leak of one scalar a request would be 24 bytes and its value.
    cmp_ok($grown, '<=', 256 + $times * 0.016, "$kind: $times times, $grown kB");
}

# Content from code is not kept: neither all of it nor a copy.
for my $with (qw(HTTP::Haul LWP)) {
    SKIP: {
        if ($with eq 'LWP') { eval { require LWP::UserAgent; require LWP::Protocol::haul } or skip 'LWP is not installed', 2 }
        my ($asked, $size, $pieces, $before, $after) = (0, 100_000, 300);
        my $content = sub {
            $after = $resident->();
            $before = $after if $asked == 20;
            return $asked++ < $pieces ? pack('N', $asked) . 'x' x ($size - 4) : '';
        };
        if ($with eq 'LWP') {
            my $request = HTTP::Request->new(PUT => $url, ['Content-Length' => $pieces * $size], $content);
            LWP::UserAgent->new->request($request);
        }
        else {
            $http->put($url, { content => $content, headers => { 'Content-Length' => $pieces * $size } });
        }
        is($asked, $pieces + 1, "$with: content is read to its end");
        cmp_ok($after - $before, '<=', 4_096, "$with: pieces of content are freed while they are sent");
    }
}
done_testing;
