//! A drawing as PDF: one page of filled and stroked paths, texts as outlines.

use resvg::{
    tiny_skia::PathSegment,
    usvg::{Group, Node, Paint, Path, Transform, Tree},
};

/// The file.
pub(super) fn write(tree: &Tree) -> Vec<u8> {
    let size = tree.size();
    let mut content = format!("1 0 0 -1 0 {} cm\n", size.height());
    group(tree.root(), &mut content);
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Resources << >> /Contents 4 0 R >>",
            size.width(),
            size.height()
        ),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let start = file.len();
    file += &format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        file += &format!("{place:010} 00000 n \n");
    }
    file += &format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    file.into_bytes()
}

fn group(parent: &Group, out: &mut String) {
    for node in parent.children() {
        match node {
            Node::Group(inner) => group(inner, out),
            Node::Path(shape) => path(shape, out),
            Node::Text(text) => group(text.flattened(), out),
            Node::Image(_) => {}
        }
    }
}

fn rgb(paint: &Paint) -> Option<String> {
    let Paint::Color(colour) = paint else { return None };
    let part = |x: u8| f32::from(x) / 255.0;
    Some(format!("{:.3} {:.3} {:.3}", part(colour.red), part(colour.green), part(colour.blue)))
}

fn path(shape: &Path, out: &mut String) {
    if !shape.is_visible() {
        return;
    }
    let fill = shape.fill().and_then(|fill| rgb(fill.paint()));
    let stroke = shape.stroke().and_then(|stroke| Some((rgb(stroke.paint())?, stroke)));
    let transform = shape.abs_transform();
    if let Some(colour) = &fill {
        *out += &format!("{colour} rg\n");
    }
    if let Some((colour, stroke)) = &stroke {
        let scale = (transform.sx.abs() + transform.sy.abs()) / 2.0;
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let dashes: Vec<String> =
            stroke.dasharray().unwrap_or_default().iter().map(|dash| (dash * scale).to_string()).collect();
        *out += &format!("{colour} RG {} w [{}] 0 d 1 j\n", stroke.width().get() * scale, dashes.join(" "));
    }
    outline(shape, transform, out);
    *out += match (fill.is_some(), stroke.is_some()) {
        (true, true) => "B\n",
        (true, false) => "f\n",
        (false, true) => "S\n",
        (false, false) => "n\n",
    };
}

fn outline(shape: &Path, transform: Transform, out: &mut String) {
    let place = |mut point: resvg::tiny_skia::Point| {
        transform.map_point(&mut point);
        (point.x, point.y)
    };
    let mut last = (0.0, 0.0);
    for segment in shape.data().segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                last = place(to);
                *out += &format!("{:.3} {:.3} m\n", last.0, last.1);
            }
            PathSegment::LineTo(to) => {
                last = place(to);
                *out += &format!("{:.3} {:.3} l\n", last.0, last.1);
            }
            PathSegment::QuadTo(control, to) => {
                let (c, to) = (place(control), place(to));
                let third = |a: f32, b: f32| a + (b - a) * 2.0 / 3.0;
                *out += &format!(
                    "{:.3} {:.3} {:.3} {:.3} {:.3} {:.3} c\n",
                    third(last.0, c.0),
                    third(last.1, c.1),
                    third(to.0, c.0),
                    third(to.1, c.1),
                    to.0,
                    to.1
                );
                last = to;
            }
            PathSegment::CubicTo(a, b, to) => {
                let (a, b, to) = (place(a), place(b), place(to));
                *out += &format!("{:.3} {:.3} {:.3} {:.3} {:.3} {:.3} c\n", a.0, a.1, b.0, b.1, to.0, to.1);
                last = to;
            }
            PathSegment::Close => *out += "h\n",
        }
    }
}
