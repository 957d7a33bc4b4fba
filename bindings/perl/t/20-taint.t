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

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $headers = $request->{headers};
    return [200, { 'X-Seen' => join '', grep { defined } @$headers{qw(x-a x-b)} }, $request->{body}] if $request->{target} eq '/echo';
    return [$request->{target} eq '/go' ? 302 : 200, { 'X-A' => 'b', Location => '/' }, 'content'];
});
my $http = HTTP::Haul->new;
my $taint = substr $^X, 0, 0;
plan skip_all => 'taint checks are off' unless tainted($taint);

my $response = $http->get($server->url('/'));
is($response->{status}, 200, 'clean URL is requested');
ok(tainted($response->{content}), 'content is tainted');
ok(tainted($response->{headers}{'x-a'}), 'headers are tainted');
ok(!tainted($response->{url}), 'url is not tainted');
for my $call (sub { $http->get($server->url('/') . $taint) }, sub { $http->request("GET$taint", $server->url('/')) }) {
    my $response = $call->();
    is($response->{status}, 599, 'tainted argument is 599');
    like($response->{content}, qr/Insecure dependency in connect/, 'message is that of Perl');
}
is($http->get($server->url('/go'))->{status}, 200, 'redirect is followed');
is($http->post($server->url('/echo'), { content => "x$taint" })->{content}, 'x', 'tainted content is sent');
is($http->post($server->url('/echo'), { content => "x$taint", headers => { 'X-A' => ["y$taint"], 'X-B' => "z$taint" } })->{headers}{'x-seen'}, 'yz', 'tainted fields are sent');
is($http->post_form($server->url('/echo'), { a => "x$taint", b => ["y$taint"] })->{content}, 'a=x&b=y', 'tainted form is sent');
ok(!eval { HTTP::Haul::Jar->new->save(File::Spec->devnull . $taint); 1 }, 'jar is not saved to a tainted name');
like($@, qr/Insecure dependency/, 'message is that of Perl');
done_testing;
