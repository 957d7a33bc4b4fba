title="Dropbox-Uploader: account, uploads in parts, downloads, lists"
source="git andreafabrizi/Dropbox-Uploader"
hosts="api.dropboxapi.com content.dropboxapi.com api.dropbox.com"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    target = request["target"]
    if target == "/oauth2/token":
        return 200, [], b'{"access_token": "token", "expires_in": 14400}'
    if target.endswith("/get_metadata"):
        if "missing" in request["body"] or "up" in request["body"]:
            return 409, [], b'{"error_summary": "path/not_found/"}'
        return 200, [], b'{".tag": "file", "name": "a", "path_lower": "/a", "size": 5}'
    if target.endswith("/download"):
        return 200, [("Dropbox-API-Result", "{}")], b"hello"
    if "upload_session/start" in target:
        return 200, [], b'{"session_id": "1"}'
    if target.endswith("/get_space_usage"):
        return 200, [], b'{"used": 1048576, "allocation": {".tag": "individual", "allocated": 2097152}}'
    if target.endswith("/get_current_account"):
        return 200, [], b'{"name": {"display_name": "A"}, "account_id": "1", "email": "a@a.test", "country": "CH"}'
    return 200, [], b'{"entries": [{".tag": "file", "name": "a", "path_display": "/a", "size": 5}], "has_more": false}'
P
}
run() {
    printf 'CONFIGFILE_VERSION=2.0\nOAUTH_APP_KEY=k\nOAUTH_APP_SECRET=s\nOAUTH_REFRESH_TOKEN=r\nOAUTH_ACCESS_TOKEN=t\n' >.dropbox_uploader
    head -c 3000000 /dev/zero >large; echo small >small
    sed -i 's/^CHUNK_SIZE=.*/CHUNK_SIZE=1/' /opt/Dropbox-Uploader/dropbox_uploader.sh
    d() { bash /opt/Dropbox-Uploader/dropbox_uploader.sh "$@"; }
    d info; d space; d upload small up; d upload -x large up; d list; d download a b; d delete a; d mkdir missing
}
mask='\d{10}|RESPONSE_FILE\w*|du_\w+'
