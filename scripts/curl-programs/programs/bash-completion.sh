title="bash-completion of curl: reads --help"
source="deb bash-completion"
run() {
    bash -c '. /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/curl
        complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=(); _curl curl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; printf "%s\n" "${COMPREPLY[@]}"; echo --; }
        complete_line curl --retr; complete_line curl --data; complete_line curl --proxy-ba; complete_line curl --ftp-method ""; complete_line curl --tlsv'
}
