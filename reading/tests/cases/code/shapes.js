exports.a = function () {};
const b = () => { function no() {} };
module.exports = { c() {}, d: () => 1 };
class E { static f() {} g = () => 1; }
export default async function h() {}
