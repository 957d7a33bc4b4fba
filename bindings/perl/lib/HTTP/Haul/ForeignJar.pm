package HTTP::Haul::ForeignJar;

# Cookie jars of other modules: with the methods of HTTP::CookieJar (cookie_header, add), or with
# those of HTTP::Cookies (add_cookie_header, extract_cookies), which take HTTP::Request and
# HTTP::Response objects.

use strict;
use warnings;

our $VERSION = '0.1.0';

sub _simple { my ($jar) = @_; return $jar->can('cookie_header') && $jar->can('add') }

sub _request {
    my ($method, $url) = @_;
    require HTTP::Request;
    return HTTP::Request->new($method, "$url");
}

# Adds the Cookie field to %$fields.
sub put {
    my ($jar, $method, $url, $fields) = @_;
    my $cookies;
    if (_simple($jar)) {
        $cookies = $jar->cookie_header("$url");
    }
    else {
        my $request = _request($method, $url);
        # The jar may read the other fields of the request.
        $request->header($_ => $fields->{$_}) for grep { lc $_ ne 'cookie' } keys %$fields;
        $jar->add_cookie_header($request);
        $cookies = $request->header('Cookie');
        my ($version) = $request->header('Cookie2');
        $fields->{Cookie2} = $version if defined $version;
    }
    if (defined $cookies && length $cookies) {
        delete @$fields{ grep { lc $_ eq 'cookie' } keys %$fields };
        $fields->{Cookie} = $cookies;
    }
    return;
}

# Stores the Set-Cookie fields of a response in the jar.
sub take {
    my ($jar, $method, $url, $response) = @_;
    my $headers = $response->{headers};
    return unless exists $headers->{'set-cookie'} || exists $headers->{'set-cookie2'};
    if (_simple($jar)) {
        my $set = $headers->{'set-cookie'};
        $jar->add("$url", $_) for ref $set ? @$set : defined $set ? $set : ();
        return;
    }
    require HTTP::Response;
    my $answer = HTTP::Response->new($response->{status}, $response->{reason});
    for my $name (qw(set-cookie set-cookie2)) {
        my $set = $headers->{$name};
        $answer->push_header($name => $_) for ref $set ? @$set : defined $set ? $set : ();
    }
    $answer->request(_request($method, $url));
    $jar->extract_cookies($answer);
    return;
}

1;
