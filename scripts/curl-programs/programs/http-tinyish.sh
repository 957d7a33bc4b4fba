title="HTTP::Tinyish with its backend Curl"
source="deb libhttp-tinyish-perl
deb libipc-run3-perl
deb libfile-which-perl"
hosts="api.test"
serve() { echo hello | put api.test/index; echo posted | put api.test/form.POST; printf 'HTTP/1.1 302 Found\nLocation: /\n\n' | put api.test/moved.http; }
run() {
    perl -MHTTP::Tinyish -e '@HTTP::Tinyish::Backends = ("HTTP::Tinyish::Curl"); my $h = HTTP::Tinyish->new(agent => "probe/1");
        for my $r ($h->get("https://api.test/", {headers => {"X-A" => ["b", "c"]}}), $h->head("http://api.test/"), $h->get("http://api.test/moved"), $h->get("http://api.test/none"),
            $h->post("http://api.test/form", {content => "a=b", headers => {"Content-Type" => "text/plain"}}), $h->mirror("http://api.test/", "copy"), $h->mirror("http://api.test/", "copy"),
            $h->get("http://localhost:81/")) {
            print join("|", $r->{success} ? 1 : 0, $r->{status}, $r->{reason}, $r->{url}, $r->{content}, map { "$_=" . (ref $r->{headers}{$_} ? join ",", @{$r->{headers}{$_}} : $r->{headers}{$_}) } sort keys %{$r->{headers}}), "\n" }'
}
