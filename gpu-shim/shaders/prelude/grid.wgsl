// A dispatch has at most 65535 workgroups per axis: rows and blocks use two axes, flattened here.

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}
