package builtin

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// page writes Markdown while it reads the tags of a page one by one. It builds no tree, because a page of a few kilobytes can have a tree
// of gigabytes. Its time and memory are limited by the length of the page, and it stops when it has written enough.
type page struct {
	base  *url.URL
	most  int // in characters
	out   strings.Builder
	chars int

	special string // element whose content is text without tags, and comes next
	due
	omitted
	enclosing
	link *link // link that is open; nil if none is
}

// due is what must be written before the next text.
type due struct {
	breaks int // number of line ends
	space  bool
	mark   string // mark of a list item or a heading
}

// omitted describes elements whose text is not written.
type omitted struct {
	raw    string // element whose content is raw text that is not written, and comes next
	hidden string // element that is omitted with everything inside it
	nested int    // number of open elements with the name of hidden inside it
}

// enclosing describes the elements around the next text.
type enclosing struct {
	pre    bool
	quotes int
	lists  []int // number of the last item of each list; -1 if it is unordered
	cells  int   // number of cells of the table row
}

// link is a link whose end was not read yet.
type link struct {
	to     string
	breaks int // line ends that are due before it
	space  bool
	text   strings.Builder
}

// markdown returns the text of a page as Markdown, with about most characters at most.
func markdown(text string, base *url.URL, most int) (string, error) {
	p := page{base: base, most: most}
	z := html.NewTokenizer(strings.NewReader(text))
	for p.chars < p.most {
		switch z.Next() {
		case html.ErrorToken:
			p.endLink()
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return "", err
			}
			return p.result(), nil
		case html.TextToken:
			p.text(z)
		case html.StartTagToken:
			p.start(z, false)
		case html.SelfClosingTagToken:
			p.start(z, true)
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(string(name))
		case html.CommentToken, html.DoctypeToken:
		}
	}
	return p.result(), nil
}

func (p *page) result() string {
	if p.pre {
		p.out.WriteString("\n```")
	}
	return strings.TrimSpace(p.out.String())
}

func (p *page) text(z *html.Tokenizer) {
	raw, element := p.raw, p.special
	p.raw, p.special = "", ""
	if p.hidden != "" || raw != "" {
		return
	}
	text := content(z.Raw(), element)
	if p.pre {
		p.write(strings.ReplaceAll(text, "\r\n", "\n"))
		return
	}
	if strings.TrimSpace(text) == "" {
		p.space = p.space || text != ""
		return
	}
	if strings.TrimLeft(text, " \t\r\n\f") != text {
		p.space = true
	}
	p.write(strings.Join(strings.Fields(text), " "))
	p.space = strings.TrimRight(text, " \t\r\n\f") != text
}

// write writes text after the line ends and the space that are due before it.
func (p *page) write(text string) {
	if p.link != nil {
		if p.link.text.Len() > 0 && (p.space || p.breaks > 0) {
			p.link.text.WriteByte(' ')
		}
		p.breaks, p.space = 0, false
		if p.link.text.WriteString(text); p.link.text.Len() > 4000 { // the page lacks the end of the link
			p.link.to = ""
			p.endLink()
		}
		return
	}
	switch {
	case p.out.Len() == 0:
		p.put(p.indent())
	case p.breaks > 0:
		p.put(strings.Repeat("\n", p.breaks) + p.indent())
	case p.space && p.mark == "":
		p.put(" ")
	}
	p.put(p.mark + text)
	p.breaks, p.space, p.mark = 0, false, ""
}

func (p *page) put(s string) {
	p.out.WriteString(s)
	p.chars += utf8.RuneCountInString(s)
}

// indent returns the beginning of a line at the present depth.
func (p *page) indent() string {
	const most = 10
	indent := strings.Repeat("> ", min(p.quotes, most))
	if n := min(len(p.lists), most); n > 0 && p.mark == "" {
		return indent + strings.Repeat("  ", n)
	} else if n > 1 {
		return indent + strings.Repeat("  ", n-1)
	}
	return indent
}

// block makes the next text begin a line. With breaks 2, an empty line precedes it.
func (p *page) block(breaks int) {
	p.space = false
	if p.mark == "" { // otherwise this is the beginning of an item, on the line of its mark
		p.breaks = max(p.breaks, breaks)
	}
}

// start begins an element. Only an svg ends at its own slash: HTML ignores the slash of all other elements.
func (p *page) start(z *html.Tokenizer, closed bool) {
	raw := z.Raw()
	tag, _ := z.TagName()
	name := string(tag)
	if name == "svg" && closed {
		return
	}
	if p.hidden != "" {
		if name == p.hidden {
			p.nested++
		}
		return
	}
	switch name {
	case "script", "style", "iframe", "noembed", "noframes", "noscript", "textarea":
		p.raw = name
	case "svg", "template", "select":
		p.hidden, p.nested = name, 0
	case "a":
		p.endLink()
		if to := p.address(attribute(raw, "href")); to != "" && !p.pre {
			p.link = &link{to: to, breaks: p.breaks, space: p.space}
			p.breaks, p.space = 0, false
		}
	case "img":
		if alt := strings.Join(strings.Fields(attribute(raw, "alt")), " "); alt != "" {
			p.write("[image: " + alt + "]")
		}
	default:
		if name == "title" || name == "xmp" || name == "plaintext" {
			p.special = name
		}
		p.open(name)
	}
}

// open begins an element that affects the form of the text.
func (p *page) open(name string) {
	const deepest = 100 // deepest nesting of lists
	p.around(name)
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.mark = strings.Repeat("#", int(name[1]-'0')) + " "
	case "title":
		p.mark = "Title: "
	case "ul", "ol":
		if number := map[string]int{"ul": -1, "ol": 0}[name]; len(p.lists) < deepest {
			p.lists = append(p.lists, number)
		}
	case "li":
		p.mark = "- "
		if n := len(p.lists) - 1; n >= 0 && p.lists[n] >= 0 {
			p.lists[n]++
			p.mark = fmt.Sprintf("%d. ", p.lists[n])
		}
	case "blockquote":
		p.quotes++
	case "pre":
		if !p.pre {
			p.endLink()
			p.write("```\n")
			p.pre = true
		}
	case "code", "tt", "kbd", "samp":
		p.tick()
	case "br":
		p.block(1)
	case "hr":
		p.block(2)
		p.write("---")
		p.block(2)
	case "tr":
		p.cells = 0
	case "td", "th":
		if p.cells++; p.cells > 1 {
			p.space = true
			p.write("|")
			p.space = true
		}
	}
}

func (p *page) end(name string) {
	p.raw, p.special = "", "" // the element had no text
	if p.hidden != "" {
		if name == p.hidden {
			if p.nested--; p.nested < 0 {
				p.hidden = ""
			}
		}
		return
	}
	switch name {
	case "a":
		p.endLink()
	case "ul", "ol":
		p.lists = p.lists[:max(0, len(p.lists)-1)]
		p.mark = ""
	case "blockquote":
		p.quotes = max(0, p.quotes-1)
	case "pre":
		if p.pre {
			p.pre = false
			p.write("\n```")
		}
	case "code", "tt", "kbd", "samp":
		p.tick()
	case "h1", "h2", "h3", "h4", "h5", "h6", "title":
		p.mark = ""
	}
	p.around(name)
}

// around separates an element from the text around it: on lines of its own, or as a paragraph. A list within a list is not a paragraph.
func (p *page) around(name string) {
	switch name {
	case "ul", "ol":
		p.block(2)
		if len(p.lists) > 0 {
			p.breaks = 1
		}
	case "h1", "h2", "h3", "h4", "h5", "h6", "title", "blockquote", "pre", "p", "table", "dl", "figure", "main", "article", "section", "header", "footer", "nav", "aside", "fieldset", "details":
		p.block(2)
	case "li", "tr", "div", "dt", "dd", "form", "address", "caption", "figcaption", "summary", "thead", "tbody", "tfoot", "option", "center", "legend", "body":
		p.block(1)
	}
}

// tick begins or ends code within a line.
func (p *page) tick() {
	switch {
	case p.pre:
	case p.link != nil:
		p.link.text.WriteByte('`')
	default:
		p.write("`")
	}
}

// endLink writes the open link, if there is one. It omits a link without text, which a reader could not choose.
func (p *page) endLink() {
	l := p.link
	if l == nil {
		return
	}
	breaks, space := p.breaks, p.space
	p.link, p.breaks, p.space = nil, l.breaks, l.space
	switch text := strings.TrimSpace(l.text.String()); {
	case text == "":
	case l.to == "" || text == l.to:
		p.write(text)
	default:
		p.write("[" + text + "](" + l.to + ")")
	}
	p.breaks, p.space = max(p.breaks, breaks), p.space || space
}

// address returns the full target of a link; "" if that is not another page.
func (p *page) address(href string) string {
	const longest = 2000
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > longest {
		return ""
	}
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if p.base != nil {
		u = p.base.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(u.String())
}
