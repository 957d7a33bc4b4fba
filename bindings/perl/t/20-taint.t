#!perl -T
use strict;
use warnings;
use Test::More;
use Scalar::Util qw(tainted);
use File::Spec;

BEGIN { unshift @INC, grep { !ref && -d && /(.*)/ } map { /\A(.*)\z/s ? $1 : () } '.' }
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PATH ENV BASH_ENV CDPATH IFS)};

my $server = t::Server->start(sub { my ($request) = @_; [$request->{target} eq '/go' ? 302 : 200, { 'X-A' => 'b', Location => '/' }, 'content'] });
my $http = HTTP::Haul->new;
my $taint = substr $^X, 0, 0;
plan skip_all => 'taint checks are off' unless tainted($taint);

my $response = $http->get($server->url('/'));
is($response->{status}, 200, 'a clean URL');
ok(tainted($response->{content}), 'what comes from outside is tainted: content');
ok(tainted($response->{headers}{'x-a'}), 'headers');
ok(!tainted($response->{url}), 'not what the program said');
for my $call (sub { $http->get($server->url('/') . $taint) }, sub { $http->request("GET$taint", $server->url('/')) }) {
    my $response = $call->();
    is($response->{status}, 599, 'a tainted one is refused');
    like($response->{content}, qr/Insecure dependency in connect/, 'as Perl says it');
}
is($http->get($server->url('/go'))->{status}, 200, 'a redirect is what max_redirect allows');
is($http->post($server->url('/'), { content => "x$taint" })->{status}, 200, 'content may be tainted');
ok(!eval { HTTP::Haul::Jar->new->save(File::Spec->devnull . $taint); 1 }, 'a jar is not saved to a tainted name');
like($@, qr/Insecure dependency/, 'as Perl says it');
done_testing;
