package report

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// markup is HTML that is written as it is. Only constants of this package are markup; a value of any other type is escaped.
type markup string

// out writes HTML. Every text of a record passes through add, which cleans and escapes it.
type out struct {
	to      io.StringWriter // keeps its first error
	secrets plaintext.Secrets
	size    int // bytes that were written
}

func (o *out) write(text string) {
	n, _ := o.to.WriteString(text)
	o.size += n
}

// add writes a form with a value in place of each {}. Values stand in the content of an element, or in an attribute between double
// quotes.
func (o *out) add(form markup, values ...any) {
	rest := string(form)
	for _, value := range values {
		before, after, _ := strings.Cut(rest, "{}")
		o.write(before)
		o.value(value)
		rest = after
	}
	o.write(rest)
}

func (o *out) value(value any) {
	switch v := value.(type) {
	case string:
		o.write(html.EscapeString(o.clean(v)))
	case markup:
		o.write(string(v))
	case int:
		o.write(strconv.Itoa(v))
	case percent:
		o.write(strconv.FormatFloat(float64(v), 'f', 2, 64) + "%")
	default:
		o.write(html.EscapeString(o.clean(fmt.Sprint(v))))
	}
}

// clean returns a text without the values of secrets and without characters that are not text, such as those that change the direction of
// writing.
func (o *out) clean(text string) string {
	text = o.secrets.Hide(text)
	if plaintext.IsWord(text, " .,:$%-_") { // most texts of a line are
		return text
	}
	return plaintext.Lines(text)
}

// percent is a length in a picture.
type percent float64

// text writes at most most characters of a text, with its line breaks. If the text is of a run, the page names the command that prints the
// rest.
func (o *out) text(text string, most int, run string) {
	text = strings.TrimRight(o.clean(text), "\n")
	first, more := plaintext.First(text, most)
	o.add("<pre>{}</pre>\n", first)
	if !more {
		return
	}
	o.add("<p class=cut>Cut after {} of {} characters.", thousands(most), thousands(utf8.RuneCountInString(text)))
	if run != "" {
		o.add(" <code>ollim run log {}</code> prints all of it.", run)
	}
	o.add("</p>\n")
}

// thousands returns a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// usd returns an amount for people. A small one has four digits after the point.
func usd(amount float64) string {
	if amount > 0 && amount < 0.01 {
		return fmt.Sprintf("$%.4f", amount)
	}
	return fmt.Sprintf("$%.2f", amount)
}
