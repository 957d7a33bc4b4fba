use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);

# Modules that are made of LWP::UserAgent, as programs use them.
BEGIN {
    eval { require LWP::UserAgent; 1 } or plan(skip_all => 'LWP is not installed');
}
use t::Server;
use LWP::Protocol::haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY)};

my $modified = 'Thu, 03 Feb 1994 00:00:00 GMT';
my %pages = (
    '/'      => '<html><head><title>Start</title></head><body><a href="/next?a=1">Next one</a> <a href="form">Form</a></body></html>',
    '/form'  => '<form action="/login" method="post"><input name="user"><input type="password" name="password"><input type="submit" name="go" value="Go"></form>',
    '/next?a=1' => 'the next one',
);
my $server = t::Server->start(sub {
    my ($request) = @_;
    my ($target, $headers) = @$request{qw(target headers)};
    if ($target eq '/login') {
        return [302, { Location => '/inside', 'Set-Cookie' => "session=$request->{body}; Path=/" }, ''] if $request->{method} eq 'POST';
    }
    return [200, {}, $headers->{cookie} || 'nobody'] if $target eq '/inside';
    if ($target eq '/file') {
        return [304, {}, ''] if ($headers->{'if-modified-since'} || '') eq $modified;
        return [200, { 'Last-Modified' => $modified }, 'f' x 100_000];
    }
    return [200, { 'Content-Type' => 'text/html', 'X-Referer' => $headers->{referer} || 'none' }, $pages{$target}] if $pages{$target};
    return [404, {}, 'no'];
});
my $dir = tempdir(CLEANUP => 1);

{
    require LWP::Simple;
    my $requests = $LWP::Protocol::haul::REQUESTS;
    like(LWP::Simple::get($server->url('/')), qr/<title>Start/, 'LWP::Simple::get returns the page');
    ok(!defined LWP::Simple::get($server->url('/none')), 'LWP::Simple::get returns undef for an error');
    is((LWP::Simple::head($server->url('/file')))[1], 100_000, 'LWP::Simple::head returns the length');
    is(LWP::Simple::getstore($server->url('/file'), "$dir/stored"), 200, 'LWP::Simple::getstore succeeds');
    is(-s "$dir/stored", 100_000, 'getstore stores the whole body');
    is(LWP::Simple::mirror($server->url('/file'), "$dir/mirrored"), 200, 'LWP::Simple::mirror succeeds');
    is((stat "$dir/mirrored")[9], 760_233_600, 'mirror sets the time');
    is(LWP::Simple::mirror($server->url('/file'), "$dir/mirrored"), 304, 'mirror again is 304');
    is($LWP::Protocol::haul::REQUESTS, $requests + 6, 'all requests go by haul');
}

SKIP: {
    eval { require WWW::Mechanize; 1 } or skip 'WWW::Mechanize is not installed', 1;
    my $requests = $LWP::Protocol::haul::REQUESTS;
    my $mech = WWW::Mechanize->new;
    $mech->get($server->url('/'));
    is($mech->title, 'Start', 'WWW::Mechanize gets a page');
    $mech->follow_link(text_regex => qr/Next/);
    is($mech->content, 'the next one', 'WWW::Mechanize follows a link');
    is($mech->response->header('X-Referer'), $server->url('/'), 'link sends the Referer');
    $mech->back;
    $mech->follow_link(text => 'Form');
    $mech->submit_form(with_fields => { user => 'u', password => 'a b' }, button => 'go');
    is($mech->uri, $server->url('/inside'), 'WWW::Mechanize submits a form');
    is($mech->content, 'session=user=u&password=a+b&go=Go', 'WWW::Mechanize sends the cookie');
    is($mech->response->previous->code, 302, 'form is redirected');
    ok(!eval { $mech->get($server->url('/none')); 1 }, 'WWW::Mechanize dies for an error');
    $mech->get($server->url('/file'), ':content_file' => "$dir/mech");
    is(-s "$dir/mech", 100_000, 'WWW::Mechanize stores a file');
    cmp_ok($LWP::Protocol::haul::REQUESTS - $requests, '>=', 7, 'all requests go by haul');
}

SKIP: {
    eval { require LWP::RobotUA; 1 } or skip 'LWP::RobotUA is not installed', 1;
    my $robot = LWP::RobotUA->new('prog/1', 'me@example.com');
    $robot->delay(0);
    is($robot->get($server->url('/next?a=1'))->content, 'the next one', 'LWP::RobotUA gets a page');
}
done_testing;
