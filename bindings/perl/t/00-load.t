use strict;
use warnings;
use Test::More;

use_ok($_) for qw(HTTP::Haul HTTP::Haul::Jar HTTP::Haul::Batch HTTP::Haul::Multipart HTTP::Haul::ForeignJar);
is(HTTP::Haul::engine_version(), HTTP::Haul->VERSION, 'libhaul has the version of the module');
can_ok('HTTP::Haul', qw(new request get head put post patch delete post_form mirror www_form_urlencode can_ssl connected
    agent cookie_jar default_headers http_proxy https_proxy keep_alive local_address max_redirect max_size no_proxy proxy
    timeout verify_SSL SSL_options batch each get_json post_json post_multipart));
done_testing;
