// Package media recognizes the files that a model can see as they are, images and PDFs, by their first bytes, and checks
// them against the limits of a model's service.
package media

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // formats that services accept
	_ "image/jpeg" // only the header of each is decoded
	_ "image/png"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	_ "golang.org/x/image/webp"
)

// pdf is the media type of PDF files.
const pdf = "application/pdf"

// IsImage reports whether every service accepts a media type as an image.
func IsImage(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// IsSeen reports whether a model can see files of a media type as they are.
func IsSeen(kind string) bool { return IsImage(kind) || kind == pdf }

// IsText reports whether a media type is a text.
func IsText(kind string) bool { return strings.HasPrefix(kind, "text/") }

// headBytes is the number of bytes that Type examines.
const headBytes = 512

// Type returns the media type of a file with this content, by its magic bytes. The name of the file does not matter. Every text is
// text/plain. Content that is cut off is a text if the part that is there is one.
func Type(content []byte) string {
	head := content[:min(len(content), headBytes)]
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch {
	case !IsText(kind):
		return kind
	case bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(plaintext.WholeRunes(content)):
		return "application/octet-stream"
	}
	return "text/plain" // also HTML and XML
}

// Facts are the properties of a file that services limit. Zero means unknown.
type Facts struct {
	Width  int `json:"width,omitempty"` // pixels, for an image
	Height int `json:"height,omitempty"`
	Pages  int `json:"pages,omitempty"` // number of pages, for a PDF
}

// Look returns the facts of an image or a PDF. The error is that of an image that cannot be decoded.
func Look(kind string, content []byte) (Facts, error) {
	if kind == pdf {
		return Facts{Pages: pages(content)}, nil
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return Facts{}, fmt.Errorf("it begins as %s and cannot be read as such: %w", kind, err)
	}
	return Facts{Width: config.Width, Height: config.Height}, nil
}

// maxInflated limits the unpacked size of one stream of a PDF, in bytes.
const maxInflated = 8 << 20

// pages returns the number of pages of a PDF, from its tree of pages; 0 if the tree cannot be read, as in an encrypted file.
func pages(content []byte) int {
	tree := regexp.MustCompile(`<<[^<>]*/Type\s*/Pages\b[^<>]*>>`)
	count := regexp.MustCompile(`/Count\s+(\d{1,6})\b`)
	most := 0
	look := func(text []byte) {
		for _, node := range tree.FindAll(text, -1) {
			if found := count.FindSubmatch(node); found != nil {
				n, _ := strconv.Atoi(string(found[1])) // the text has only a few digits
				most = max(most, n)
			}
		}
	}
	look(content)
	packed := regexp.MustCompile(`/Type\s*/ObjStm\b[^>]*>>\s*stream\r?\n`)
	for _, at := range packed.FindAllIndex(content, -1) {
		if r, err := zlib.NewReader(bytes.NewReader(content[at[1]:])); err == nil {
			text, _ := io.ReadAll(io.LimitReader(r, maxInflated)) // use what was unpacked before an error
			look(text)
		}
	}
	return most
}

// Tokens estimates how many tokens a file has for a model.
func (f Facts) Tokens(kind string) int {
	const (
		perPage = 3000 // tokens for a page of a PDF: 1,500 to 3,000 for the text, and its image
		pixels  = 750  // pixels of an image for each token
		most    = 4784 // most tokens of an image, which is scaled down
	)
	if kind == pdf {
		return perPage * max(1, f.Pages)
	}
	if tokens := f.Width * f.Height / pixels; tokens > 0 {
		return min(tokens, most)
	}
	return most
}

// Limits are the limits of a service. Zero means no limit.
type Limits struct {
	Image    int // bytes of one image, encoded in base64
	Side     int // width and height of an image, in pixels
	Many     int // number of images in a request above which ManySide applies to each instead of Side
	ManySide int
	Pages    int // pages of all PDFs in a request; each image counts as one
	Request  int // bytes of all files in a request, encoded in base64
}

// Anthropic returns the limits of the Messages API for a model with a window of so many tokens, or of unknown size for 0.
func Anthropic(window int) Limits {
	// the service allows 32 MB, including all text
	l := Limits{Image: 5 << 20, Side: 8000, Many: 20, ManySide: 2000, Pages: 100, Request: 30 << 20}
	if window > 200_000 {
		l.Pages = 600
	}
	return l
}

// OpenAI returns the limits of OpenAI's chat completions.
func OpenAI() Limits { return Limits{Request: 48 << 20} } // the service allows 50 MB, including all text

// Load is the sum of the files in one request so far.
type Load struct {
	Limits Limits

	images, pages, encoded int
	side                   int // side of the largest image
}

// Add adds a file of size bytes. If the file would exceed a limit, it is not added, and the error names the limit.
func (l *Load) Add(kind string, size int, f Facts) error {
	next, most, side := *l, l.Limits, max(f.Width, f.Height)
	next.encoded += base64.StdEncoding.EncodedLen(size)
	next.pages += max(1, f.Pages)
	next.side = max(next.side, side)
	if IsImage(kind) {
		next.images++
	}
	alone := *l == Load{Limits: most}
	switch {
	case most.Image > 0 && IsImage(kind) && size > decoded(most.Image):
		return fmt.Errorf("the image has %d bytes; the service takes %d (%s in base64)", size, decoded(most.Image), Size(most.Image))
	case most.Side > 0 && side > most.Side:
		return fmt.Errorf("the image has %d x %d pixels; the service takes %d x %d", f.Width, f.Height, most.Side, most.Side)
	case most.Pages > 0 && alone && next.pages > most.Pages:
		return fmt.Errorf("the PDF has %d pages; the service takes %d", f.Pages, most.Pages)
	case most.Pages > 0 && next.pages > most.Pages:
		return fmt.Errorf("with it the message has %d pages and images; the service takes %d", next.pages, most.Pages)
	case most.Many > 0 && next.images > most.Many && next.side > most.ManySide:
		return fmt.Errorf("with it the message has %d images, the largest %d pixels long; of more than %d images the service takes %d x %d pixels each",
			next.images, next.side, most.Many, most.ManySide, most.ManySide)
	case most.Request > 0 && alone && next.encoded > most.Request:
		return fmt.Errorf("the file has %d bytes; the service takes %d in a message (%s in base64)", size, decoded(most.Request), Size(most.Request))
	case most.Request > 0 && next.encoded > most.Request:
		return fmt.Errorf("with it the files of the message have %d bytes; the service takes %d (%s in base64)",
			decoded(next.encoded), decoded(most.Request), Size(most.Request))
	}
	*l = next
	return nil
}

// decoded returns how many bytes have a base64 encoding of at most encoded bytes.
func decoded(encoded int) int { return encoded / 4 * 3 }

// Size formats a number of bytes for people.
func Size(bytes int) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
