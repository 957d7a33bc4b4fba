use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $modified = 'Sun, 06 Nov 1994 08:49:37 GMT';
my $server = t::Server->start(sub {
    my ($request) = @_;
    return [404, {}, 'no'] if $request->{target} eq '/404';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"); 0 } if $request->{target} eq '/short';
    return [304, {}, ''] if ($request->{headers}{'if-modified-since'} || '') eq $modified;
    return [200, { 'Last-Modified' => $modified }, 'content'];
});
my $dir = tempdir(CLEANUP => 1);
my $http = HTTP::Haul->new;
my $slurp = sub { open my $in, '<', $_[0] or return; local $/; scalar <$in> };
my $files = sub { opendir my $list, $dir or die; join ' ', sort grep { !/\A\./ } readdir $list };

my $response = $http->mirror($server->url('/a'), "$dir/a");
ok($response->{success}, 'mirror succeeds');
is($slurp->("$dir/a"), 'content', 'file has the content');
is((stat "$dir/a")[9], 784111777, 'file has the time of Last-Modified');
$response = $http->mirror($server->url('/a'), "$dir/a");
is("$response->{status} " . !!$response->{success}, '304 1', '304 is a success');
is($slurp->("$dir/a"), 'content', '304 leaves the file unchanged');
for my $path (qw(/404 /short)) {
    $response = $http->mirror($server->url($path), "$dir/a", { headers => { 'If-Modified-Since' => 'Thu, 01 Jan 1970 00:00:00 GMT' } });
    ok(!$response->{success}, "$path is none");
    is($slurp->("$dir/a"), 'content', 'failure leaves the file unchanged');
}
is($files->(), 'a', 'no temporary file remains');
ok(!eval { $http->mirror($server->url('/a'), "$dir/no/such"); 1 }, 'missing directory dies');

is(HTTP::Haul::Mirror::_http_time($_), 784111777, $_) for 'Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994';
is(HTTP::Haul::Mirror::_http_date(784111777), $modified, '_http_date formats a date');
is(HTTP::Haul::Mirror::_http_time($_), undef, "no time: $_") for '', 'x', 'Sun, 06 Foo 1994 08:49:37 GMT', 'Sun, 99 Nov 1994 08:49:37 GMT';
done_testing;
