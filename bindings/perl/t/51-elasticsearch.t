use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};
eval { require Search::Elasticsearch; 1 } or plan skip_all => 'Search::Elasticsearch is not installed';

# The parts of Elasticsearch that the client uses here: documents, bulk, search.
my %documents;
my $server = t::Server->start(sub {
    my ($request) = @_;
    my ($method, $target) = @$request{qw(method target)};
    my $answer = sub {
        my ($status, $json) = @_;
        return [$status, { 'Content-Type' => 'application/json', 'X-Elastic-Product' => 'Elasticsearch', 'X-Connection' => $request->{connection} }, $json];
    };
    return $answer->(200, qq({"connection":$request->{connection},"agent":"$request->{headers}{'user-agent'}"})) if $target eq '/';
    return sub { 0 } if $target =~ m{\A/broken/};
    return sub { 1 } if $target =~ m{\A/hang/};
    if ($target =~ m{\A/index/_doc/(\w+)}) {
        if ($method eq 'PUT' || $method eq 'POST') { $documents{$1} = $request->{body}; return $answer->(201, '{"result":"created"}') }
        return $answer->(200, qq({"_id":"$1","_source":$documents{$1}})) if exists $documents{$1};
        return $answer->(404, '{"found":false}');
    }
    my $lines = () = $request->{body} =~ /\n/g;
    return $answer->(200, qq({"errors":false,"lines":$lines})) if $target eq '/_bulk';
    return $answer->(409, '{"error":{"type":"conflict","reason":"x"}}') if $target =~ m{\A/conflict/};
    return $answer->(200, '{"hits":{"total":{"value":1},"hits":[]}}');
});
my $es = Search::Elasticsearch->new(nodes => ['127.0.0.1:' . $server->port], cxn => 'Haul', request_timeout => 10, max_retries => 0);

like($es->info->{agent}, qr/\Aelasticsearch-perl/, 'client has its own User-Agent');
for my $size (100, 10_000, 300_000) {
    my $text = 'x' x $size;
    is($es->index(index => 'index', id => "d$size", body => { text => $text })->{result}, 'created', "document of $size bytes is written");
    is($es->get(index => 'index', id => "d$size")->{_source}{text}, $text, "document of $size bytes is read");
}
is($es->bulk(body => [map { ({ index => { _index => 'i' } }, { n => $_ }) } 1 .. 50])->{lines}, 100, 'bulk sends all lines');
is($es->search(index => 'index', body => { query => { match_all => {} } })->{hits}{total}{value}, 1, 'search has a result');
ok(!$es->exists(index => 'index', id => 'none'), 'document that is missing does not exist');
is($es->info->{connection}, 1, 'reads and writes use one connection');

# Failures have the classes of Search::Elasticsearch.
my $class_of = sub { eval { $_[0]->(); 1 } ? 'none' : ref $@ };
my $get = sub { my ($client, $index) = @_; $class_of->(sub { $client->get(index => $index, id => 1, @_[2 .. $#_]) }) };
like($get->($es, 'index'), qr/::Missing\z/, '404 is Missing');
like($get->($es, 'conflict'), qr/::Conflict\z/, '409 is Conflict');
my $down = Search::Elasticsearch->new(nodes => ['127.0.0.1:1'], cxn => 'Haul');
like($get->($down, 'index'), qr/::(?:Cxn|NoNodes)\z/, 'refused connection is Cxn');
my $cxn = $es->transport->cxn_pool->cxns->[0];
isa_ok($cxn->handle, 'HTTP::Haul', 'handle');
my $perform = sub { my ($path) = @_; $class_of->(sub { $cxn->perform_request({ method => 'GET', path => $path, timeout => 0.3 }) }) };
like($perform->('/hang/'), qr/::Timeout\z/, 'time limit is Timeout');
like($perform->('/broken/'), qr/::ContentLength\z/, 'closed connection is ContentLength');
is($cxn->error_from_text(599, "Could not connect to 'a:1': refused"), 'Cxn', 'failure to connect is Cxn');
is($cxn->error_from_text(599, 'SSL connection failed for a'), 'SSL', 'failure of TLS is SSL');

# A second configuration.
my $gzip = Search::Elasticsearch->new(nodes => ['http://127.0.0.1:' . $server->port], cxn => 'Haul', handle_args => { max_redirect => 0 });
is($gzip->transport->cxn_pool->cxns->[0]->handle->max_redirect, 0, 'handle_args are attributes of HTTP::Haul');
my $https = Search::Elasticsearch->new(nodes => ['https://127.0.0.1:9'], cxn => 'Haul', ssl_options => { SSL_verify_mode => 0, SSL_use_cert => 1 });
is($https->transport->cxn_pool->cxns->[0]->handle->SSL_options->{SSL_verify_mode}, 0, 'ssl_options reach HTTP::Haul');
done_testing;
