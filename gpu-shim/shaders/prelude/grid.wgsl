// A dispatch may have at most 65535 workgroups along one axis: rows and blocks lie on two axes and are counted here.

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}
