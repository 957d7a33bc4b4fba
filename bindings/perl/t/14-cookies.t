use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

# POST /login sets a session cookie; every other request is answered with its cookies.
my $server = t::Server->start(sub {
    my ($request) = @_;
    if ($request->{target} eq '/login') {
        return [303, { Location => '/in', 'Set-Cookie' => ['sid=' . ($request->{body} =~ /user=(\w+)/)[0] . '; HttpOnly', 'keep=1; Max-Age=3600; Path=/'] }, ''];
    }
    return [200, {}, join '; ', sort split /; /, $request->{headers}{cookie} || ''];
});
my $dir = tempdir(CLEANUP => 1);

# One jar, two objects.
my $jar = HTTP::Haul::Jar->new;
my ($first, $second) = map { HTTP::Haul->new(cookie_jar => $jar) } 1 .. 2;
is($second->get($server->url('/'))->{content}, '', 'empty jar sends no cookie');
is($first->post_form($server->url('/login'), { user => 'ann' })->{content}, 'keep=1; sid=ann', 'cookie of a redirect is stored');
is($second->get($server->url('/'))->{content}, 'keep=1; sid=ann', 'object with the same jar sends the cookie');
is(HTTP::Haul->new->get($server->url('/'))->{content}, '', 'object without the jar sends no cookie');
is($jar->count, 2, 'jar has two cookies');
my ($sid) = grep { $_->{name} eq 'sid' } $jar->cookies;
is("$sid->{value} $sid->{domain} $sid->{path} $sid->{host_only} $sid->{http_only} " . defined $sid->{expires}, 'ann 127.0.0.1 / 1 1 ', 'cookie has its attributes');
is($first->cookie_jar, $jar, 'cookie_jar returns the jar');
$first->cookie_jar(undef);
is($first->get($server->url('/'))->{content}, '', 'cookie_jar(undef) sends no cookie');
$first->cookie_jar($jar);
like($first->get($server->url('/'))->{content}, qr/sid=ann/, 'cookie_jar can be set again');
my $later = HTTP::Haul->new;
$later->cookie_jar({});
isa_ok($later->cookie_jar, 'HTTP::Haul::Jar', 'cookie_jar set to a hash');
is($later->post_form($server->url('/login'), { user => 'joe' })->{content}, 'keep=1; sid=joe', 'cookie_jar set to a hash stores cookies');
ok(!eval { $later->cookie_jar({ flie => 'x' }); 1 } && $@ =~ /no option 'flie'/, 'cookie_jar refuses an unknown option');

# Files in both formats, which the next process reads.
my $next = sub {
    my ($file) = @_;
    open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', <<'END', $file, $server->url('/') or die $!;
use HTTP::Haul; use HTTP::Haul::Jar;
print HTTP::Haul->new(cookie_jar => { file => $ARGV[0] })->get($ARGV[1])->{content};
END
    local $/;
    return scalar <$out>;
};
for my $format (qw(netscape lwp)) {
    my $file = "$dir/$format";
    $jar->save($file, format => $format);
    is((stat $file)[2] & 07777, 0600, "$format: nobody else reads it");
    is($next->($file), 'keep=1; sid=ann', "$format: the next process has them");
}
open my $in, '<', "$dir/netscape" or die $!;
like(join('', <$in>), qr/^#HttpOnly_127\.0\.0\.1\tFALSE\t\/\tFALSE\t0\tsid\tann$/m, 'Netscape file has the cookie');
open $in, '<', "$dir/lwp" or die $!;
like(join('', <$in>), qr/\A#LWP-Cookies-1\.0\nSet-Cookie3: /, 'HTTP::Cookies file has the cookie');

# The file of a jar, which is saved automatically.
{
    my $own = HTTP::Haul->new(cookie_jar => { file => "$dir/own", autosave => 1 });
    $own->post_form($server->url('/login'), { user => 'bob' });
}
is($next->("$dir/own"), 'keep=1; sid=bob', 'autosave writes the file');
{
    my $own = HTTP::Haul::Jar->new(file => "$dir/own", autosave => 1);
    $own->clear('127.0.0.1', '/', 'sid');
}
is($next->("$dir/own"), 'keep=1', 'removed cookie is not saved');
# A jar that is loaded from one file and saved to another.
HTTP::Haul::Jar->new(file => "$dir/own")->save("$dir/copy");
is($next->("$dir/copy"), 'keep=1', 'jar can be saved to another file');
my $both = HTTP::Haul::Jar->new;
$both->load("$dir/own");
$both->load("$dir/netscape");
$both->save("$dir/both");
is($next->("$dir/both"), 'keep=1; sid=ann', 'two files can be merged');
is(HTTP::Haul::Jar->new(file => "$dir/none")->count, 0, 'missing file is empty');
ok(!eval { HTTP::Haul::Jar->new->save; 1 }, 'save without a file dies');
ok(!eval { $jar->save("$dir/no/such/dir"); 1 }, 'save to a missing directory dies');

# The methods of a jar.
my $plain = HTTP::Haul::Jar->new;
ok($plain->add('http://h.example/a/b', 'x=1; Path=/a'), 'add stores a cookie');
ok(!$plain->add('http://h.example/', 'x=1; Domain=other.example'), 'add refuses a foreign domain');
is($plain->cookie_header('http://h.example/a/c'), 'x=1', 'cookie_header returns the cookie for its path');
is($plain->cookie_header('http://h.example/'), '', 'cookie_header is empty for another path');
ok($plain->add("http://h.example/\xc3\xbc/a b", 'u=1; Path=/%C3%BC'), 'add takes a URL in bytes and with blanks');
is($plain->cookie_header("http://h.example/\xc3\xbc/a b"), 'u=1', 'cookie_header takes a URL in bytes and with blanks');
is($plain->cookie_header("http://h.example/\x{fc}/"), 'u=1', 'cookie_header takes a URL in characters');
$plain->remove('h.example', undef, 'u');
$plain->add('http://h.example/', 'y=2; Max-Age=100');
$plain->clear_session;
is(join(' ', map { $_->{name} } $plain->cookies), 'y', 'clear_session removes session cookies');
is($plain->clear->count, 0, 'clear removes all cookies');
$plain->set_cookie(0, 'z', '3', '/', '.h.example', undef, 0, 0, 100);
is($plain->cookie_header('http://sub.h.example/'), 'z=3', 'set_cookie sets a cookie for a domain');

{
    my $http = HTTP::Haul->new(cookie_jar => $jar);
    my @mine = ($server->url('/'), { headers => { Cookie => 'mine=1' } });
    is($_->{content}, 'mine=1', 'Cookie field is sent in place of the cookies of the jar') for $http->get(@mine), $http->batch([[GET => @mine]]);
}
my @warnings;
{
    local $SIG{__WARN__} = sub { push @warnings, @_ };
    for my $refused (['a', 'v;w', '/', 'h.example'], ['a', "v\n", '/', 'h.example'], ['a', "\x{263a}", '/', 'h.example'], ['$a', 'v', '/', 'h.example'],
        ['a', 'v', 'x', 'h.example'], ['a', 'v', undef, 'h.example'], ['a', 'v', '/', undef], [undef, 'v', '/', 'h.example'], ['a', 'v', '/', '']) {
        my $jar = HTTP::Haul::Jar->new;
        is(eval { $jar->set_cookie(0, @$refused) }, $jar, 'set_cookie ignores a cookie that is not valid');
        is($jar->count, 0, 'such a cookie is not stored');
    }
}
is("@warnings", '', 'set_cookie does not warn');
ok(!eval { $plain->put({ name => 'a', value => 'v;w', path => '/', domain => 'h.example' }); 1 }, 'put refuses a cookie that is not valid');

# Jars of other modules.
SKIP: {
    eval { require HTTP::CookieJar } or skip 'HTTP::CookieJar is not installed', 3;
    my $jar = HTTP::CookieJar->new;
    my $http = HTTP::Haul->new(cookie_jar => $jar);
    is($http->post_form($server->url('/login'), { user => 'eve' })->{content}, 'keep=1; sid=eve', 'HTTP::CookieJar is used');
    is(scalar $jar->cookies_for($server->url('/')), 2, 'HTTP::CookieJar stores the cookies');
    is($http->get($server->url('/'), { headers => { Cookie => 'mine=1' } })->{content}, 'keep=1; sid=eve', 'jar overrides a Cookie field');
}
SKIP: {
    eval { require HTTP::Cookies; require HTTP::Request; require HTTP::Response } or skip 'HTTP::Cookies is not installed', 4;
    my $theirs = HTTP::Cookies->new(file => "$dir/theirs", ignore_discard => 1);
    my $http = HTTP::Haul->new(cookie_jar => $theirs);
    is($http->post_form($server->url('/login'), { user => 'pat' })->{content}, 'keep=1; sid=pat', 'HTTP::Cookies is used');
    $theirs->save;
    is($next->("$dir/theirs"), 'keep=1; sid=pat', 'file of HTTP::Cookies can be loaded');
    $jar->save("$dir/ours", format => 'lwp');
    my $read = HTTP::Cookies->new(file => "$dir/ours", ignore_discard => 1);
    is(HTTP::Haul->new(cookie_jar => $read)->get($server->url('/'))->{content}, 'keep=1; sid=ann', 'HTTP::Cookies can load our file');
    # A name, a value and a host that need care.
    my $odd = HTTP::Haul::Jar->new;
    $odd->put({ name => 'a', value => 'x y"z\\', domain => 'localhost', path => '/', host_only => 1, expires => time + 1000 });
    $odd->save("$dir/odd", format => 'lwp');
    my @seen;
    my $odd_theirs = HTTP::Cookies->new(file => "$dir/odd", ignore_discard => 1);
    $odd_theirs->scan(sub { push @seen, "$_[1]=$_[2] $_[4]" });
    is("@seen", 'a=x y"z\\ localhost.local', 'special characters survive in the file');
}
# A field of the program and the cookies of the jar, as with HTTP::Cookies.
SKIP: {
    eval { require HTTP::Request; require HTTP::Cookies; 1 } or skip 'LWP is not installed', 2;
    my %jars = (haul => HTTP::Haul::Jar->new, theirs => HTTP::Cookies->new);
    $jars{haul}->add('http://a.example/', 'sid=1');
    $jars{theirs}->set_cookie(0, 'sid', 1, '/', 'a.example', undef, 1, 0, 1000);
    for my $jar (sort keys %jars) {
        my $request = HTTP::Request->new(GET => 'http://a.example/', [Cookie => 'lang=de']);
        $jars{$jar}->add_cookie_header($request);
        is($request->header('Cookie'), 'lang=de; sid=1', "cookie of the program stays with the jar $jar");
    }
}

# The bytes of a field, however Perl stores its characters.
my @texts = ("v=caf\xe9", "v=caf\xe9");
utf8::upgrade($texts[1]);
for my $text (@texts) {
    my $bytes = HTTP::Haul::Jar->new;
    ok($bytes->add('https://a.example/', $text), 'Latin-1 cookie is stored');
    is($bytes->cookie_header('https://a.example/'), "v=caf\xe9", 'Latin-1 cookie is sent as bytes');
}
my $whole = HTTP::Haul::Jar->new;
ok(!$whole->add('https://a.example/', "n=b\0; Secure"), 'cookie with a NUL byte is refused');
is($whole->count, 0, 'cookie with a NUL byte is not stored in part');

ok(!eval { HTTP::Haul->new(cookie_jar => bless {}, 'Nothing'); 1 }, 'object that is no jar is refused');
like($@, qr/Cookie jar must provide the 'add' method/, 'message names the missing method');
done_testing;
