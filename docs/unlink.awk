# One page, for `unlink`. A link's text may go over several lines, and be an image with a link of its own. What stands
# between fences is no link.
function normal(path,    part, n, i, m, kept, whole) {
    n = split(path, part, "/")
    for (i = 1; i <= n; i++)
        if (part[i] == "..")
            m--
        else if (part[i] != "" && part[i] != ".")
            kept[++m] = part[i]
    for (i = 1; i <= m; i++)
        whole = whole "/" kept[i]
    return whole
}
function is_there(path) {
    if (!(path in there))
        there[path] = system("test -e '" path "'") == 0
    return there[path]
}
function replaced(link,    from, to, text, plain, target, path) {
    from = index(link, "[")
    to = index(link, "](")
    text = substr(link, from + 1, to - from - 1)
    target = substr(link, to + 2)
    sub(/^[ \t\n]+/, "", target)
    sub(/[ \t\n#)].*$/, "", target)
    path = normal(folder "/" target)
    if (target ~ /^[A-Za-z][A-Za-z0-9+.-]*:/ || is_there(path))
        return link
    path = index(path, root "/") == 1 ? substr(path, length(root) + 2) : target
    plain = text
    gsub(/^`+|`+$/, "", plain)
    return plain == path ? text : text " (" path " in the source)"
}
function unlinked(rest,    done, at, n) {
    while (match(rest, /!?\[[^][]*\]\([ \t\n]*[^) \t\n#]+(#[^) \t\n]*)?[ \t\n]*\)/)) {
        at = RSTART
        n = RLENGTH
        done = done substr(rest, 1, at - 1) replaced(substr(rest, at, n))
        rest = substr(rest, at + n)
    }
    return done rest
}
function put() {
    printf "%s", fenced ? text : unlinked(unlinked(text))
    text = ""
}
BEGIN { root = normal(root) }
/^ *(```|~~~)/ {
    put()
    fenced = !fenced
}
{ text = text $0 "\n" }
END { put() }
