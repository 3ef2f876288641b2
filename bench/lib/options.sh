# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Answers --help and refuses unknown options before a benchmark's script builds or starts anything. The comment at the
# head of the script is its manual. If --help is among the script's arguments, reading this file prints the manual.
# options_check refuses options that the indented lines of the manual do not have.

manual=$(sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0")
for argument; do
    [[ $argument != --help && $argument != -h ]] || {
        echo "$manual"
        exit 0
    }
done

options_refuse() {
    echo "bench: $* (--help)" >&2
    exit 2
}

known=$(grep '^  ' <<<"$manual")

# options_check ARGUMENT...: each is an option of the manual, followed by its value where the manual has a word in capitals
# behind it: any text, or a number where that is N, or seconds with a fraction where it is S.
options_check() {
    local name value
    while [[ $# -gt 0 ]]; do
        name=$1
        [[ $name =~ ^--[a-z-]+$ && $known =~ (^|[^a-z-])"$name"(' '([A-Z]+))?([^a-z-]|$) ]] ||
            options_refuse "no option \"$name\""
        value=${BASH_REMATCH[3]}
        shift
        [[ -n $value ]] || continue
        [[ $# -gt 0 && $1 != --* ]] || options_refuse "$name needs a value"
        case $value in
        N) [[ $1 =~ ^[0-9]{1,7}$ ]] || options_refuse "$name takes a number, not \"$1\"" ;;
        S) [[ $1 =~ ^[0-9]{1,5}([.][0-9]+)?$ ]] || options_refuse "$name takes seconds, not \"$1\"" ;;
        esac
        shift
    done
}
