package media

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"
)

// pictures are images of 3 x 2 pixels, by media type.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 3, 2))
	var a, b, c bytes.Buffer
	if err := png.Encode(&a, m); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&c, m, nil); err != nil {
		t.Fatal(err)
	}
	webp, err := base64.StdEncoding.DecodeString("UklGRhwAAABXRUJQVlA4TA8AAAAvAkAAAAfQ/4qe/wEAAAA=")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"image/png": a.Bytes(), "image/jpeg": b.Bytes(), "image/gif": c.Bytes(), "image/webp": webp}
}

func TestType(t *testing.T) {
	for kind, content := range pictures(t) {
		if got := Type(content); got != kind || !IsImage(got) || !IsSeen(got) {
			t.Errorf("%s: %s", kind, got)
		}
		f, err := Look(kind, content)
		if err != nil || f.Width != 3 || f.Height != 2 || f.Tokens(kind) <= 0 {
			t.Errorf("%s: %+v, %v", kind, f, err)
		}
		if _, err := Look(kind, content[:12]); err == nil {
			t.Errorf("%s: its beginning alone could be read", kind)
		}
	}
	for content, want := range map[string]string{
		"": "text/plain", "hello\n": "text/plain", "<html>hi": "text/plain", "<?xml?>": "text/plain", "Grüße": "text/plain",
		strings.Repeat("x", 600) + "\xc3": "text/plain", "caf\xe9 au": "application/octet-stream", "a\x00b": "application/octet-stream",
		"%PDF-1.4\n": pdf, "PK\x03\x04": "application/zip", strings.Repeat("x", 600) + "\x00": "application/octet-stream",
	} {
		if got := Type([]byte(content)); got != want {
			t.Errorf("%.20q: %s, want %s", content, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write([]byte("1 0 <</Kids[2 0 R]/Count 7 /Type /Pages>> 2 0 <</Count 99/Type/Outlines>>")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]int{
		"%PDF-1.4\n<</Type/Pages/Count 120/Kids[]>><</Type /Pages /Count 3>>":                                    120,
		"%PDF-1.4\n<</Type/Outlines/Count 120>><</Type/Page>>":                                                   0,
		"%PDF-1.7\n9 0 obj<</Type/ObjStm/N 2/Filter/FlateDecode>>stream\r\n" + packed.String() + "\r\nendstream": 7,
		"%PDF-1.7\n9 0 obj<</Type/ObjStm>>\nstream\nnot packed":                                                  0,
	} {
		if f, err := Look(pdf, []byte(content)); err != nil || f.Pages != want {
			t.Errorf("%.60q: %+v, %v, want %d pages", content, f, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	long, small := Facts{Width: 2100, Height: 10}, Facts{Width: 10, Height: 10}
	load := Load{Limits: Anthropic(200_000)}
	for i := range 20 {
		if err := load.Add("image/png", 100, long); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	for _, f := range []Facts{long, small} {
		if err := load.Add("image/png", 100, f); err == nil || !strings.Contains(err.Error(), "21 images, the largest 2100 pixels") {
			t.Errorf("%v", err)
		}
	}
	if err := load.Add(pdf, 100, Facts{Pages: 80}); err != nil {
		t.Error(err)
	}
	for size, tc := range map[int]struct {
		kind, want string
		facts      Facts
		window     int
	}{
		1:         {pdf, "the PDF has 101 pages; the service takes 100", Facts{Pages: 101}, 0},
		2:         {pdf, "", Facts{Pages: 101}, 1_000_000},
		3_932_160: {"image/gif", "", small, 0},
		3_932_161: {"image/gif", "3932161 bytes; the service takes 3932160 (5.2 MB in base64)", small, 0},
		4:         {"image/png", "10 x 8001 pixels; the service takes 8000 x 8000", Facts{Width: 10, Height: 8001}, 0},
		23 << 20:  {pdf, "the file has 24117248 bytes; the service takes 23592960", Facts{}, 0},
	} {
		err := (&Load{Limits: Anthropic(tc.window)}).Add(tc.kind, size, tc.facts)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d: %v, want %q", size, err, tc.want)
		}
	}
}

// FuzzType: any content has a type that what it is allows, and looking at it never panics.
func FuzzType(f *testing.F) {
	for kind, content := range pictures(f) {
		f.Add(content)
		f.Add([]byte(fmt.Sprintf("%s\x00%s", content[:8], kind)))
	}
	f.Add([]byte("%PDF-1.7\n<</Type/ObjStm>>stream\nx<</Type/Pages/Count 999999>>"))
	f.Fuzz(func(t *testing.T, content []byte) {
		kind := Type(content)
		whole := false // apart from a character that is cut off at the end
		for cut := range utf8.UTFMax {
			whole = whole || utf8.Valid(content[:max(0, len(content)-cut)])
		}
		if IsText(kind) && (bytes.IndexByte(content, 0) >= 0 || !whole) {
			t.Errorf("%q is no text", content)
		}
		if IsSeen(kind) {
			if facts, err := Look(kind, content); err == nil && (facts.Pages < 0 || facts.Tokens(kind) <= 0) {
				t.Errorf("%+v", facts)
			}
		}
	})
}
