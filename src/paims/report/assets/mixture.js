// The emulator's mixture, computed in the page: the same formulas as the library's.
//
// Given one component's hyper-parameters, with K = L L', F = L^-1 H = Q R and the whitened
// residual e of the runs: v = L^-1 k(x), mean = h'beta + v'e, g = R^-T (h - F'v), and the squared
// scale sigma2 (1 - v'v + g'g + nugget). Components are Student-t (or normal) distributions.
"use strict";

function decodeDoubles(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const out = new Float64Array(bytes.length / 8);
  for (let i = 0; i < out.length; i++) out[i] = view.getFloat64(8 * i, true);
  return out;
}

// Factors of the correlation, functions of a distance in input l for component c. Most kernels
// are a polynomial times an exponential, of t = (scale d^phi_power / phi)^power.
function formFactor({ scale, phi_power, power, polynomial }) {
  const raise = (x, e) => (e === 1 ? x : e === 2 ? x * x : Math.pow(x, e));
  return (d, c, l) => {
    const t = Math.min(raise((scale * raise(d, phi_power)) / c.phi[l], power), 1e4);
    let sum = 0;
    for (let k = polynomial.length - 1; k >= 0; k--) sum = sum * t + polynomial[k];
    return sum * Math.exp(-t);
  };
}

// Others come as tables: for each part of the distances its upper end and the coefficients of Chebyshev
// polynomials, summed by Clenshaw's recurrence.
function tableFactor({ degree, tables }) {
  const size = degree + 2;
  const decoded = tables.map((row) => row.map(decodeDoubles));
  return (d, c, l) => {
    const table = decoded[c.row][l];
    let at = 0;
    while (d > table[at] && at + size < table.length) at += size;
    const lower = at ? table[at - size] : 0;
    const s = (2 * (d - lower)) / (table[at] - lower) - 1;
    let [b, last] = [0, 0];
    for (let k = degree; k > 0; k--) [b, last] = [2 * s * b - last + table[at + 1 + k], b];
    return s <= 1 + 1e-9 ? s * b - last + table[at + 1] : NaN;
  };
}

// log Gamma by Lanczos's approximation (g = 7, nine terms): 15 digits for positive arguments.
function logGamma(x) {
  const c = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  let sum = c[0];
  for (let i = 1; i < 9; i++) sum += c[i] / (x - 1 + i);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// Regularised incomplete beta function by its continued fraction (Lentz's algorithm).
function incompleteBeta(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)
  );
  const tiny = 1e-300;
  let c = 1;
  let d = 1 / Math.max(Math.abs(1 - ((a + b) * x) / (a + 1)), tiny);
  let f = d;
  for (let m = 1; m <= 500; m++) {
    let step = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + step * d || tiny);
    c = 1 + step / c || tiny;
    f *= c * d;
    step = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + step * d || tiny);
    c = 1 + step / c || tiny;
    const change = c * d;
    f *= change;
    if (Math.abs(change - 1) < 1e-16) break;
  }
  return (front * f) / a;
}

// Normal distribution function, through the incomplete gamma function: series, or continued
// fraction in the tails.
function normalCdf(z) {
  const x = 0.5 * z * z;
  let p;
  if (x < 3) {
    let term = 1 / 0.5;
    let sum = term;
    for (let n = 1; n < 300 && term > 1e-17 * sum; n++) {
      term *= x / (0.5 + n);
      sum += term;
    }
    p = sum * Math.exp(-x + 0.5 * Math.log(x || 1e-300) - 0.5 * Math.log(Math.PI));
    return z < 0 ? 0.5 * (1 - p) : 0.5 * (1 + p);
  }
  let b = x + 0.5;
  let c = 1e300;
  let d = 1 / b;
  let f = d;
  for (let i = 1; i < 500; i++) {
    const a = -i * (i - 0.5);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    f *= c * d;
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  const upper = f * Math.exp(-x + 0.5 * Math.log(x) - 0.5 * Math.log(Math.PI));
  return z < 0 ? 0.5 * upper : 1 - 0.5 * upper;
}

class Family {
  // dof null: the normal distribution.
  constructor(dof) {
    this.dof = dof;
    this.variance = dof === null ? 1 : dof / (dof - 2);
    this.constant =
      dof === null
        ? -0.5 * Math.log(2 * Math.PI)
        : logGamma(0.5 * (dof + 1)) - logGamma(0.5 * dof) - 0.5 * Math.log(dof * Math.PI);
    // A table of the distribution function, interpolated with its derivative: error below 1e-11.
    this.reach = 12;
    this.step = 0.01;
    const size = Math.round(this.reach / this.step) + 1;
    this.table = Float64Array.from({ length: size }, (_, i) => this.exactCdf(-i * this.step));
    this.slopes = Float64Array.from({ length: size }, (_, i) => this.pdf(i * this.step));
  }

  pdf(z) {
    if (this.dof === null) return Math.exp(this.constant - 0.5 * z * z);
    return Math.exp(this.constant - 0.5 * (this.dof + 1) * Math.log1p((z * z) / this.dof));
  }

  exactCdf(z) {
    if (this.dof === null) return normalCdf(z);
    const tail = 0.5 * incompleteBeta(this.dof / (this.dof + z * z), 0.5 * this.dof, 0.5);
    return z < 0 ? tail : 1 - tail;
  }

  // Probability below -|z|.
  tail(z) {
    const place = Math.abs(z) / this.step;
    const i = Math.floor(place);
    if (i + 1 >= this.table.length) return this.exactCdf(-Math.abs(z));
    const s = place - i;
    const h = this.step;
    const a = this.table[i];
    const b = this.table[i + 1];
    const da = -h * this.slopes[i];
    const db = -h * this.slopes[i + 1];
    const r = 1 - s;
    return r * r * ((1 + 2 * s) * a + s * da) + s * s * ((1 + 2 * r) * b - r * db);
  }

  cdf(z) {
    const tail = this.tail(z);
    return z < 0 ? tail : 1 - tail;
  }
}

class Mixture {
  constructor(data) {
    this.data = data;
    this.names = data.names;
    this.p = data.names.length;
    this.n = data.n;
    this.X = decodeDoubles(data.X);
    const factors = data.kernels.map((k) => (k.tables ? tableFactor(k) : formFactor(k)));
    this.basis = (x) => data.exponents.map((e) => e.reduce((h, k, i) => h * x[i] ** k, 1));
    this.family = new Family(data.dof);
    this.components = data.components.map((c) => ({
      factor: factors[c.kernel],
      row: c.row,
      weight: c.weight,
      phi: c.phi,
      nugget: c.nugget,
      sigma2: c.sigma2,
      beta: c.beta,
      L: decodeDoubles(c.L),
      e: decodeDoubles(c.e),
      F: decodeDoubles(c.F),
      R: decodeDoubles(c.R),
    }));
    this.v = new Float64Array(this.n);
  }

  scaled(x) {
    const s = this.data.inputs;
    return x.map((value, i) => (value * 2 ** -s.exponent[i] - s.lower[i]) / s.width[i]);
  }

  value(t) {
    const s = this.data.output;
    return (s.shift + s.scale * t) * 2 ** s.exponent;
  }

  difference(t) {
    const s = this.data.output;
    return s.scale * t * 2 ** s.exponent;
  }

  // Correlations with the runs, as far as they come from all inputs but one (`free`, or -1).
  correlations(c, x, free) {
    const { n, p, X } = this;
    const out = new Float64Array(n).fill(1);
    for (let i = 0; i < n; i++) {
      for (let l = 0; l < p; l++) {
        if (l !== free) out[i] *= c.factor(Math.abs(x[l] - X[i * p + l]), c, l);
      }
    }
    return out;
  }

  // Location and scale of one component at scaled inputs x with regressors h.
  component(c, x, h, fixed, free) {
    const { n, p, v, X } = this;
    let mean = 0;
    let square = 0;
    let place = 0;
    for (let i = 0; i < n; i++) {
      let sum = fixed[i];
      if (free >= 0) sum *= c.factor(Math.abs(x[free] - X[i * p + free]), c, free);
      for (let j = 0; j < i; j++) sum -= c.L[place++] * v[j];
      v[i] = sum / c.L[place++];
      mean += v[i] * c.e[i];
      square += v[i] * v[i];
    }
    const q = h.length;
    const g = new Float64Array(q);
    let trend = 0;
    for (let k = 0; k < q; k++) {
      let rest = h[k];
      for (let i = 0; i < n; i++) rest -= c.F[i * q + k] * v[i];
      for (let j = 0; j < k; j++) rest -= c.R[j * q + k] * g[j];
      g[k] = rest / c.R[k * q + k];
      trend += g[k] * g[k];
      mean += h[k] * c.beta[k];
    }
    const term = Math.max(1 - square + trend + c.nugget, 0);
    return [mean, Math.sqrt(c.sigma2 * term)];
  }

  // Mean, standard deviation and quantiles of the output at inputs x, in the user's units.
  predict(x, levels = []) {
    return this.line(x, -1, [NaN], levels)[0];
  }

  // The same for each of some values of one input, with all others as in x.
  line(x, free, values, levels = []) {
    const fixed = this.components.map((c) => this.correlations(c, this.scaled(x), free));
    return values.map((value) => {
      const point = x.slice();
      if (free >= 0) point[free] = value;
      const t = this.scaled(point);
      const h = this.basis(t);
      const parts = this.components.map((c, j) => this.component(c, t, h, fixed[j], free));
      return this.summary(parts, levels);
    });
  }

  summary(parts, levels) {
    let mean = 0;
    let variance = 0;
    parts.forEach(([m], i) => (mean += this.components[i].weight * m));
    parts.forEach(([m, s], i) => {
      variance += this.components[i].weight * (this.family.variance * s * s + (m - mean) ** 2);
    });
    const std = Math.sqrt(variance);
    return {
      mean: this.value(mean),
      std: this.difference(std),
      quantiles: levels.map((q) => this.value(this.quantile(parts, q, mean, std))),
    };
  }

  // Newton's method on the distribution function, inside a bracket that bisection halves.
  quantile(parts, q, mean, std) {
    const cdf = (y) => {
      let total = 0;
      let density = 0;
      parts.forEach(([m, s], i) => {
        const w = this.components[i].weight;
        if (!(s > 0)) {
          total += y >= m ? w : 0;
          return;
        }
        const z = (y - m) / s;
        total += w * this.family.cdf(z);
        density += (w * this.family.pdf(z)) / s;
      });
      return [total, density];
    };
    if (!(std > 0)) return mean;
    let low = mean - std;
    let high = mean + std;
    while (cdf(low)[0] > q) low -= 2 * (mean - low) + 1e-300;
    while (cdf(high)[0] < q) high += 2 * (high - mean) + 1e-300;
    let y = 0.5 * (low + high);
    for (let i = 0; i < 200 && high - low > 1e-13 * std; i++) {
      const [total, density] = cdf(y);
      if (total < q) low = y;
      else high = y;
      let next = y - (total - q) / density;
      if (!(next > low && next < high)) next = 0.5 * (low + high);
      if (Math.abs(next - y) <= 1e-12 * std) return next;
      y = next;
    }
    return y;
  }
}
