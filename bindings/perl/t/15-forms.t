use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp;
use t::Server;
use HTTP::Haul;
use JSON::PP;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    return [200, { 'Content-Type' => 'application/json; charset=utf-8' }, '{"a":[1,"\u00e9"]}'] if $request->{target} eq '/json';
    return [200, { 'Content-Type' => 'application/json' }, '{'] if $request->{target} eq '/broken';
    return [200, { 'Content-Type' => $request->{headers}{'content-type'} || 'none', 'X-Accept' => $request->{headers}{accept} || 'none' }, $request->{body}];
});
my $http = HTTP::Haul->new;

for my $case (
    [{ a => 1, b => 2 }, 'a=1&b=2'], [{ b => [2, 1], a => '' }, 'a=&b=2&b=1'], [[b => 2, a => 1], 'b=2&a=1'], [[b => [2, 1]], 'b=2&b=1'],
    [{ 'a b' => 'c+d&e=f' }, 'a+b=c%2Bd%26e%3Df'], [{ a => "\xe9" }, 'a=%C3%A9'], [{ a => "\x{263a}" }, 'a=%E2%98%BA'],
    [{ a => undef }, 'a='], [{}, ''], [[], ''], [{ a => 'A-Z_a.z~0' }, 'a=A-Z_a.z~0'], [{ a => "\0\n%" }, 'a=%00%0A%25'],
) {
    is($http->www_form_urlencode($case->[0]), $case->[1], "form: $case->[1]");
    my $response = $http->post_form($server->url('/x'), $case->[0], { headers => { 'content-type' => 'other', 'X-A' => 1 } });
    is($response->{content}, $case->[1], 'post_form sends the form');
    is($response->{headers}{'content-type'}, 'application/x-www-form-urlencoded', 'content type is sent');
}
SKIP: {
    eval { require HTTP::Tiny } or skip 'HTTP::Tiny is not installed', 1;
    my @all = map { (chr($_) => "v\x{100}" . chr $_) } 1 .. 255;
    ok($http->www_form_urlencode(\@all) eq HTTP::Tiny->new->www_form_urlencode(\@all), 'encoding is that of HTTP::Tiny');
}
for my $bad ([1], \'x', sub { }) {
    ok(!eval { $http->www_form_urlencode($bad); 1 }, 'no form: ' . ref $bad);
}

# multipart/form-data
my $file = File::Temp->new(SUFFIX => '.txt');
print {$file} "file\r\ncontent";
close $file;
my $response = $http->post_multipart($server->url('/x'), [
    a => 1, b => ['x', "y\xe9"], c => { content => '{}', content_type => 'application/json' }, 'd"' => { file => "$file", filename => 'n"m.txt' },
]);
my ($boundary) = $response->{headers}{'content-type'} =~ /\Amultipart\/form-data; boundary=([\w-]+)\z/;
ok($boundary, 'multipart has a boundary');
my @parts = split /\r?\n?--\Q$boundary\E(?:--)?\r\n/, $response->{content};
is_deeply(\@parts, ['',
    qq(Content-Disposition: form-data; name="a"\r\n\r\n1),
    qq(Content-Disposition: form-data; name="b"\r\n\r\nx),
    qq(Content-Disposition: form-data; name="b"\r\n\r\ny\xe9),
    qq(Content-Disposition: form-data; name="c"\r\nContent-Type: application/json\r\n\r\n{}),
    qq(Content-Disposition: form-data; name="d%22"; filename="n%22m.txt"\r\nContent-Type: application/octet-stream\r\n\r\nfile\r\ncontent),
], 'multipart has all parts') or diag explain \@parts;
ok(!eval { $http->post_multipart($server->url('/x'), 'x'); 1 }, 'post_multipart refuses text');

# JSON
$response = $http->get_json($server->url('/json'));
is_deeply($response->{json}, { a => [1, "\xe9"] }, 'get_json decodes the body');
like($http->get_json($server->url('/broken'))->{json_error}, qr/./, 'get_json reports invalid JSON');
for my $method (qw(post put patch)) {
    my $name = "${method}_json";
    my $response = $http->$name($server->url('/x'), { a => "\x{263a}" });
    is_deeply($response->{json}, { a => "\x{263a}" }, $name);
    is($response->{headers}{'content-type'}, 'application/json', 'content type is sent');
    is($response->{headers}{'x-accept'}, 'application/json', 'JSON is accepted');
}
ok(!exists $http->get_json($server->url('/x'))->{json}, 'other content types are not decoded');
done_testing;
