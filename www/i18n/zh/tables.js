export default {
  "tables.whole": "这里要填 {low} 到 {high} 之间的整数，仍为 {old}。",
  "tables.positive": "这里要填大于 0 的数，仍为 {old}。",
  "tables.preset": "例子",
  "tables.own": "自己的数字",
  "tables.save": "保存数字（CSV）",
  "tables.answer": "回答 {number}",
};
