# Code that runs during a request drops or changes its arguments.
use strict;
use warnings;
use lib '.';
use Test::More;
use Time::HiRes qw(alarm);
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    return [303, { Location => '/echo' }, ''] if $request->{target} eq '/see-other';
    # The signal comes during the response.
    return sub {
        kill ALRM => getppid;
        select undef, undef, undef, 0.2;
        return t::Server::write_all($_[0], "HTTP/1.1 302 Found\r\nLocation: /echo\r\nContent-Length: 0\r\n\r\n");
    } if $request->{target} eq '/signal';
    return [200, {}, "$request->{method} $request->{body} " . ($request->{headers}{'x-a'} || 'none')];
});
my ($url, $other) = ($server->url('/see-other'), $server->url('/echo'));
my $http = HTTP::Haul->new;

# Content that ends with a call of code. Values that take the freed memory.
my @values;
my $content = sub {
    my ($code) = @_;
    my $count = 0;
    return sub { return 'abc' unless $count++; $code->(); @values = map { { a => $_ } } 1 .. 200; return '' };
};
my $is_answered = sub {
    my ($response, $name) = @_;
    is("$response->{status} $response->{content}", '200 GET  1', $name);
};

my @jobs;
@jobs = ({ url => $url, options => { headers => { 'X-A' => 1 }, content => $content->(sub { shift @jobs }) } });
$is_answered->($http->post($jobs[0]{url}, $jobs[0]{options}), 'content callback drops URL and options');

my $options;
$options = { headers => { 'X-A' => 1 }, content => $content->(sub { undef $options }) };
$is_answered->($http->post($url, $options), 'content callback drops the options');

my @arguments;
@arguments = ('POST', $url, { headers => { 'X-A' => 1 }, content => $content->(sub { @arguments = () }) });
$is_answered->($http->request(@arguments), 'content callback drops all arguments');

my %job;
%job = (method => 'POST', url => $url, headers => { 'X-A' => 1 });
my $response = $http->request($job{method}, $job{url}, { headers => $job{headers}, content => $content->(sub { %job = () }) });
$is_answered->($response, 'content callback drops method, URL and fields');

my ($method, $to) = ('POST', $url);
$response = $http->request($method, $to, { headers => { 'X-A' => 1 }, content => $content->(sub { $method = 'PUT' x 9; $to = 'x' x 99 }) });
$is_answered->($response, 'content callback changes method and URL');

my $dropped = HTTP::Haul->new;
$is_answered->($dropped->post($url, { headers => { 'X-A' => 1 }, content => $content->(sub { undef $dropped }) }), 'content callback drops the object');

my $emptied = HTTP::Haul->new;
$response = eval { $emptied->post($other, { headers => { 'X-A' => 1 }, content => $content->(sub { %$emptied = () }) }) };
is("$response->{status} $response->{content}", '200 POST abc 1', 'content callback empties the object');

my $with_timings;
$with_timings = { timings => 1, data_callback => sub { undef $with_timings; @values = map { { a => $_ } } 1 .. 50 } };
ok($http->get($other, $with_timings)->{timings}, 'option is kept although the callback drops it');

%job = (url => $server->url('/signal'), options => { headers => { 'X-A' => 1 } });
{
    local $SIG{ALRM} = sub { %job = (); @values = map { { a => $_ } } 1 .. 200 };
    $is_answered->($http->get($job{url}, $job{options}), 'signal handler drops URL and options');
}

# Objects whose text is made by such code.
{
    package Text;
    use overload '""' => sub { $_[0][0]->(); return 'text' }, fallback => 1;
}
my $text = sub { my ($code) = @_; return bless [sub { $code->(); @values = map { { a => $_ } } 1 .. 200 }], 'Text' };

$options = { headers => { 'X-A' => $text->(sub { undef $options }) }, content => 'abc' };
$response = $http->post($other, $options);
is("$response->{status} $response->{content}", '200 POST abc text', 'value of a field drops the options');

my $list;
$list = [$text->(sub { undef $list }), 1, 2];
$response = $http->get($other, { headers => { 'X-A' => $list } });
is($response->{status}, 200, 'value of a field drops the list with it');

my %form;
%form = (a => [$text->(sub { %form = () }), 1], b => 2);
like($http->www_form_urlencode(\%form), qr/^a=text\b/, 'value of a form drops the form');

my %jars = (one => HTTP::Haul::Jar->new);
is($jars{one}->cookie_header($text->(sub { %jars = () })), '', 'URL of a cookie drops the jar');

done_testing;
