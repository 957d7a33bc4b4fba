title="neofetch: the public address"
source="deb neofetch"
hosts="ident.me"
serve() { echo 192.0.2.1 | put ident.me/index; }
run() { printf 'print_info() {\ninfo "Public IP" public_ip\n}\n' >conf; neofetch --config conf --backend off --stdout --ip_host http://ident.me --ip_timeout 2; }
