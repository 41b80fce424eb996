package heartbeat

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	for _, good := range []string{"https://hc-ping.com/5f-0a", "http://127.0.0.1:3001/api/push/x?status=up&msg=OK", "http://[::1]/"} {
		if err := CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "hc-ping.com/x", "ftp://h/x", "https://", "https:///x", "https://u:p@h/x", "https://h/x#y", "http://h\n/", "http://h/%zz"} {
		if CheckURL(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestGet(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.String()+" "+r.UserAgent())
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/moved":
			http.Redirect(w, r, "/x", http.StatusFound)
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{"/x?a=b": "", "/moved": "", "/gone": "127.0.0.1:" + port(s) + ": HTTP 404 Not Found"} {
		err := Get(t.Context(), s.URL+path)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if all := strings.Join(got, "\n"); len(got) != 4 || !strings.Contains(all, "GET /x?a=b ollim") {
		t.Errorf("%s", all)
	}
}

// An error does not contain the URL, whose path is what the monitor knows its user by.
func TestCallThatFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		if err := Get(ctx, "http://"+address+"/secret"); err == nil || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), address+": ") {
			t.Errorf("%v", err)
		}
	}
}

func port(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}
