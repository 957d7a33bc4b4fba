title="httpstat: curl's -w and -D as a picture"
source="pypi httpstat==1.3.1"
hosts="site.test"
serve() { echo hello | put site.test/index; echo posted | put site.test/form.POST; }
run() { export PYTHONPATH=/opt/python HTTPSTAT_SHOW_IP=false HTTPSTAT_SHOW_SPEED=false; for a in "http://site.test/" "https://site.test/ -H X-A:b" "http://site.test/form -d a=b -X POST" "http://localhost:81/"; do python3 -m httpstat $a 2>&1; done; }
mask='\d+ *ms|\d+\.\d+|response_\w+|in: \S+|: +\d+|\|?  +\|?'
