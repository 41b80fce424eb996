package builtin

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

func TestPublic(t *testing.T) {
	for want, addresses := range map[bool]string{
		true: `1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 11.0.0.0
			2606:4700:4700::1111 2a00:1450:4001:82a::200e 2001:200::1 2001:4860:4860::8888 64:ff9b::8.8.8.8 3fff:1000::1 2003::1`,
		false: `0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1
			172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
			239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1
			64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a00:1::1
			2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 2606:4700::1%eth0 fec0::1 ff02::1 4000::1`,
	} {
		for address := range strings.FieldsSeq(addresses) {
			if got := isPublic(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s: %v", address, got)
			}
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address")
	}
}

// What a name leads to is judged when it is dialled, however it is written.
func TestFetcher(t *testing.T) {
	hits := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hits++; _, _ = io.WriteString(w, "inside") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1", "2130706433", "0x7f.1"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+":"+port, nil)
		if err != nil {
			continue
		}
		if r, err := fetcher(isPublic).Do(request); err == nil {
			_ = r.Body.Close()
			t.Errorf("%s was reached", host)
		} else if strings.HasPrefix(host, "127.0") && !errors.Is(err, errPrivate) {
			t.Error(err)
		}
	}
	if hits != 0 {
		t.Errorf("%d hits", hits)
	}
	t.Setenv("HTTP_PROXY", server.URL)
	var asked []netip.Addr
	client := fetcher(func(a netip.Addr) bool { asked = append(asked, a); return true })
	r, err := client.Get("http://localhost:" + port)
	if err != nil || hits != 1 || len(asked) == 0 || !asked[len(asked)-1].IsLoopback() {
		t.Fatal(err, hits, asked)
	}
	_ = r.Body.Close()
}

// web is a server that every host name leads to, and a box that fetches from it.
func web(t *testing.T, pages http.HandlerFunc) *Box {
	t.Helper()
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	return &Box{client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func TestWebFetch(t *testing.T) {
	b := web(t, func(w http.ResponseWriter, r *http.Request) {
		say := func(kind, text string) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		}
		to := func(where string) { http.Redirect(w, r, where, http.StatusFound) }
		switch r.URL.Path {
		case "/":
			say("text/html; charset=utf-8", "<title>T</title><p>Hello <a href='/x'>there</a>.")
		case "/text":
			say("text/plain", "as <b>it</b> is")
		case "/json":
			say("application/vnd.x+json", `{"a":1}`)
		case "/png":
			say("image/png", "\x89PNG\r\n\x1a\n....")
		case "/none":
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html><p>sniffed")
		case "/latin":
			say("text/plain; charset=iso-8859-1", "caf\xe9 \x80")
		case "/meta":
			say("text/html", "<meta charset=shift_jis><p>\x83\x65")
		case "/nul":
			say("text/plain", "a\x00b\xff")
		case "/same":
			to("/text")
		case "/other":
			to("http://other.example.org/page?x=1")
		case "/inside":
			to("http://127.0.0.1/")
		case "/metadata":
			to("http://metadata.internal/")
		case "/user":
			to("http://a:b@example.com/text")
		case "/file":
			to("file:///etc/passwd")
		case "/loop":
			to("/loop")
		case "/chain":
			if n := len(r.URL.RawQuery); n < 5 {
				to("/chain?" + strings.Repeat("x", n+1))
			} else {
				say("text/plain", "at last")
			}
		case "/long":
			say("text/plain", strings.Repeat("é", fetchChars+5))
		case "/endless":
			say("text/html", "<p>begin")
			for range 300 {
				_, _ = io.WriteString(w, strings.Repeat("<i></i>", 4096))
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			for range 20 {
				_, _ = z.Write([]byte(strings.Repeat("b", 1<<20)))
			}
			_ = z.Close()
		case "/empty":
			say("text/html", "<p> ")
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "broken")
		case "/agent":
			say("text/plain", r.UserAgent()+" "+r.Header.Get("Cookie")+r.Header.Get("Referer"))
		default:
			http.NotFound(w, r)
		}
	})
	for path, want := range map[string]string{
		"/": "Title: T\n\nHello [there](http://example.com/x).", "/text": "as <b>it</b> is", "/json": `{"a":1}`, "/none": "sniffed", "/latin": "café €", "/nul": "a\ufffdb\u00ff",
		"/same": "as <b>it</b> is", "/chain": "at last", "/long": strings.Repeat("é", fetchChars) + "\n(cut at 60000 characters)", "/empty": "(the page has no text)", "/agent": "ollim ",
		"/other":   "The page redirects to another address, which was not fetched. To fetch it, call WebFetch with:\nhttp://other.example.org/page?x=1",
		"/endless": "begin</\n(the page is longer than 5 MiB; only that much was read)", "/bomb": strings.Repeat("b", fetchChars) + "\n(cut at 60000 characters)",
	} {
		if r := b.Call(t.Context(), "WebFetch", object(t, "url", "http://example.com"+path, "prompt", "what is it?")); r.IsError || r.Text != want {
			t.Errorf("%s: %v, %.300q", path, r.IsError, r.Text)
		}
	}
	for path, want := range map[string]string{
		"/png": "it is not text but image/png, 12 bytes", "/meta": "its character set, shift_jis, is not supported", "/inside": "may not be fetched", "/metadata": "only public hosts", "/user": "may not be fetched",
		"/file": "may not be fetched", "/loop": "more than 5 redirects", "/nowhere": "without an address", "/500": "500 Internal Server Error\nbroken", "/nope": "404 Not Found",
	} {
		if r := b.Call(t.Context(), "WebFetch", object(t, "url", "http://example.com"+path)); !r.IsError || !strings.Contains(r.Text, want) || len(r.Text) > 3000 {
			t.Errorf("%s: %v, %.300q", path, r.IsError, r.Text)
		}
	}
	for _, address := range []string{"http://127.0.0.1/", "http://localhost/", "http://[::1]/", "ftp://example.com/", "example.com", "http://a@example.com/", "http://10.1/", "http://0x7f.0.0.1/", "http://intranet/", "file:///etc/passwd", "http://example.com\\@x/"} {
		if r := b.Call(t.Context(), "WebFetch", object(t, "url", address)); !r.IsError {
			t.Errorf("%s: %.100q", address, r.Text)
		}
	}
}

func TestWebFetchEnds(t *testing.T) {
	end := make(chan struct{})
	b := web(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "drip")
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	defer close(end)
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("stopped here"))
	defer stop()
	if r := b.Call(ctx, "WebFetch", object(t, "url", "http://example.com/")); !r.IsError || r.Text != "http://example.com/: stopped here" {
		t.Errorf("%+v", r)
	}
}

func TestMarkdown(t *testing.T) {
	base, _ := url.Parse("https://example.com/a/b")
	for in, want := range map[string]string{
		"<h1>A</h1><h2> B <i>c</i></h2>text": "# A\n\n## B c\n\ntext", "<p>one<p>two<br>three": "one\n\ntwo\nthree", "a<b>b</b>c <b>d</b> e": "abc d e",
		"<ul><li>a<li><p>b</p><ol><li>c</li><li>d</li></ol><li>e</ul>f": "- a\n- b\n  1. c\n  2. d\n- e\n\nf", "<blockquote>q<p>r</blockquote>s": "> q\n\n> r\n\ns",
		"x <a href=c?d=e&amp;f>link</a> y": "x [link](https://example.com/a/c?d=e&f) y", "<a href='#x'>in page</a><a href='javascript:x'> js</a>": "in page js",
		"<a href=/x><div>Title</div><p>more</p></a>z": "[Title more](https://example.com/x)\n\nz", "<a href=/x><img src=i></a>.": ".", "<a href=/x>one<a href=/y>two</a>": "[one](https://example.com/x)[two](https://example.com/y)",
		"<img alt='a cat' src=x>": "[image: a cat]", "<a href='/x'><img alt=logo></a>": "[[image: logo]](https://example.com/x)", "a &lt;b&gt; &amp; c&nbsp;d": "a <b> & c d",
		"<pre>  x\n    y &lt;</pre>z": "```\n  x\n    y <\n```\n\nz", "use <code>go vet</code> now": "use `go vet` now", "<pre><code>a</code></pre>": "```\na\n```", "<pre>open": "```\nopen\n```",
		"<table><tr><th>a<th>b<tr><td>c</td><td>d <b>e</b></td></table>f": "a | b\nc | d e\n\nf", "<script>no</script><style>no</style>yes<!-- no -->": "yes", "<svg><title>no</title></svg>yes<template>no</template>": "yes",
		"<noscript>no</noscript><select><option>no</select>yes": "yes", "<textarea><b>no</textarea>yes": "yes", "a<hr>b": "a\n\n---\n\nb", "<ul></ul></ul></li></blockquote></pre></a>x": "x", "": "", "plain": "plain",
		"<title> A  title </title><body>b": "Title: A title\n\nb", "<h1></h1>x": "x", "<p>  </p>\n<p> a\n b </p>": "a b", "<p>a<svg class='i'/> <b>x</b>": "a x",
		"<svg><g><svg/></g>no</svg>x": "x", "<script src=a></script><h1>a</h1><style></style>b": "# a\n\nb", "<iframe src=x></iframe>b<script src=a></script> <p>c": "b\n\nc",
		"<script src=a/>no</script>b": "b", "<a href='http://[bad'>x</a>": "x",
	} {
		got, err := markdown(in, base, 1000)
		if err != nil || got != want {
			t.Errorf("%s:\n%q\nwant %q (%v)", in, got, want, err)
		}
	}
}

// The result stays in proportion to the page, whatever is in it, and so does the time: a page of this size that took time in
// proportion to its square would not end before the deadline of the test.
func TestHostilePages(t *testing.T) {
	pieces := []string{"<div>", "<b>", "<a href=x>", "<ul><li>", "<blockquote>", "<td>", "<table>", "<svg>", "<pre>", "<a href=x>y", "<p>x", "&amp;", "<", "<a ", "<!--", "</", "<select>", "<li>x", "<ol><li>x<blockquote>y", "<template>", "<h1>", "`<code>"}
	size := testkit.Full(400, 100) << 10
	for _, piece := range pieces {
		text := strings.Repeat(piece, size/len(piece))
		for _, before := range []string{"", "<table><tr><td colspan=1000000000 rowspan=1000000000>", "<b a><b b><b c><p>"} {
			got, err := markdown(before+text, nil, fetchChars)
			if err != nil || len(got) > len(text)+2*fetchChars {
				t.Errorf("%s: %d, %v", piece, len(got), err)
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	base, _ := url.Parse("https://example.com/")
	for _, s := range []string{"<ul><li><a href=x>y<table><tr><td>z", "<pre><a href=x></pre></a>", "<a href='%zz'>", "<h1><li><blockquote>x", "</ol></ul><li>", "<select><select></select>x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := markdown(text, base, 500)
		if err == nil && len([]rune(got)) > 500+5000+len(text) {
			t.Fatalf("%d characters of %d", len(got), len(text))
		}
	})
}
